// The sequences of an engine: the tokens of each, how its next token is chosen, and which KV pages hold its
// positions. Pages hold positions of earlier steps; a step reads its own rows from the projection that made
// them, and appends them to the pages. If all layers have a window, pages before it return to the pool, and
// the page table has -1 for them.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "heddle/engine/page_pool.h"
#include "heddle/engine/target.h"
#include "heddle/ir/attention_plan.h"

namespace heddle {

// Settings by which a sequence's next token is chosen, with the names and meanings of transformers.
// temperature 0: greedy.
struct SamplingSettings {
  float temperature = 0, top_p = 1, min_p = 0, repetition_penalty = 1;
  i32 top_k = 0;
  u64 seed = 0;
  // As OpenAI has them: of the tokens that were chosen, with how often each was.
  float presence_penalty = 0, frequency_penalty = 0;
  std::vector<std::pair<i32, float>> bias = {};  // what is added to a token's logit; minus infinity bans it
  std::vector<std::pair<i32, i32>> not_before = {};  // a token, and the choices that must come before it
  std::span<const i32> chosen = {};  // tokens that were chosen before it is opened; open() alone reads them

  // True if the largest logit is chosen.
  bool is_plain() const {
    return temperature == 0 && repetition_penalty == 1 && presence_penalty == 0 && frequency_penalty == 0 &&
           bias.empty() && not_before.empty();
  }
};

using SequenceId = u32;

struct Sequence {
  bool open = false;
  std::vector<i32> tokens;  // one for each position in the pages
  std::vector<i32> pages;
  i32 gone = 0;           // the first pages, which no step reads any more: -1
  std::vector<u32> seen;  // bits of those tokens
  u32 draws = 0;
  StepSequence sampling;
  // Changes of its scores, for its slot (ir/score_edits.h); empty: none. `edits_lie_there`: the slot has them.
  std::vector<float> edits;
  bool edits_lie_there = false;

  i32 length() const { return i32(tokens.size()); }
  void see(i32 token) { seen[size_t(token) / 32] |= 1u << (token % 32); }
  void count(i32 token) {
    if (edits.empty() || token < 0) return;
    float& times = edits[edits.size() / 2 + size_t(token)];
    times = std::max(times, 0.0f) + 1;
  }
  // True if its settings leave a token to choose.
  bool has_choice() const;
  void see_again() {
    std::ranges::fill(seen, 0u);
    for (i32 token : tokens) see(token);
  }
};

class Sequences {
 public:
  // `reach`: how far back steps read. Pages that lie wholly before that return to the pool. `recurrent`: see ModelInfo.
  Sequences(i32 count, i32 vocab, PagePool pool, const AttentionCut& reach = {}, bool recurrent = false);

  // Takes the pages that already hold the beginning of `prompt`; the sequence's length says how many
  // positions that saves. The last token is never among them, because only a step chooses the token after it.
  // None are taken where the model is recurrent.
  // Throws Error when all sequences are open.
  SequenceId open(const SamplingSettings& sampling, std::span<const i32> prompt);
  void close(SequenceId id);
  // The bias and the penalties of `sampling` replace those that the sequence has; it has chosen nothing for them yet.
  void begin_answer(Sequence& sequence, const SamplingSettings& sampling) const;
  // Throws Error when it is not open.
  Sequence& at(SequenceId id);
  const PagePool& pool() const { return pool_; }
  // No later sequence finds what a page holds. Throws Error when one is open.
  void forget_pages();

  // Gives the sequence pages for this many positions.
  void grow(Sequence& sequence, i32 positions);
  // Records tokens that a step has put into its pages.
  void extend(Sequence& sequence, std::span<const i32> tokens);
  // Drops the positions from `length` on; if another sequence holds the page of `length`, that whole page
  // too. If the pages before `length` were released, which is never so within one page, the sequence keeps
  // the beginning that can still be found. A recurrent model's sequence keeps all or nothing.
  void rewind(Sequence& sequence, i32 length);
  // The pages whose content is the longest beginning of `tokens` that a sequence may begin with.
  std::vector<i32> find(std::span<const i32> tokens) const;
  // Drops what a step that failed has begun: pages beyond the length and, where the model is recurrent, all positions.
  void drop_step(Sequence& sequence) { rewind(sequence, recurrent_ ? 0 : sequence.length()); }

 private:
  void begin(Sequence& sequence, std::span<const i32> tokens);
  void let_go_from(Sequence& sequence, i32 first);
  i32 first_needed(i32 length) const;
  void let_go_unread(Sequence& sequence);

  i32 vocab_;
  PagePool pool_;
  AttentionCut reach_;
  bool recurrent_;
  std::vector<Sequence> sequences_;
};

// The most pages that `sequences` sequences hold when one step adds `added` positions to them in all.
i64 most_pages(const Capacity& capacity, i32 sequences, i64 added);

}  // namespace heddle
