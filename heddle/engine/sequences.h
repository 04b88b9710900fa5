// The sequences of an engine: what each has seen, how its tokens are chosen, and which KV pages hold its positions.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "heddle/engine/page_pool.h"
#include "heddle/engine/target.h"
#include "heddle/ir/attention_plan.h"

namespace heddle {

// How a sequence's next token is chosen; the names and meanings of transformers. temperature 0: greedy.
struct SamplingSettings {
  float temperature = 0, top_p = 1, min_p = 0, repetition_penalty = 1;
  i32 top_k = 0;
  u64 seed = 0;
};

using SequenceId = u32;

struct Sequence {
  bool open = false;
  std::vector<i32> tokens;  // one for each position in the pages
  std::vector<i32> pages;
  i32 gone = 0;           // the first of them, of which no step reads more: -1
  std::vector<u32> seen;  // bits of those tokens
  u32 draws = 0;
  StepSequence sampling;

  i32 length() const { return i32(tokens.size()); }
  void see(i32 token) { seen[size_t(token) / 32] |= 1u << (token % 32); }
  void see_again() {
    std::ranges::fill(seen, 0u);
    for (i32 token : tokens) see(token);
  }
};

class Sequences {
 public:
  // `reach`: how far back steps read. Pages that lie wholly before that go back to the pool.
  Sequences(i32 count, i32 vocab, PagePool pool, const AttentionCut& reach = {});

  // Takes the pages that hold the beginning of `prompt` already: its length says how much they spare. The last
  // token is never among that, as only a step chooses what follows it. Throws Error where all are open.
  SequenceId open(const SamplingSettings& sampling, std::span<const i32> prompt);
  void close(SequenceId id);
  // Throws Error where it is not open.
  Sequence& at(SequenceId id);
  const PagePool& pool() const { return pool_; }

  // Gives the sequence pages for so many positions.
  void grow(Sequence& sequence, i32 positions);
  // Notes tokens that a step has put into its pages.
  void extend(Sequence& sequence, std::span<const i32> tokens);
  // Drops the positions from `length` on, and with a page that others hold all of that page. Where what came before
  // `length` is gone, which by one page back it never is, the beginning stays that can still be found.
  void rewind(Sequence& sequence, i32 length);

 private:
  void begin(Sequence& sequence, std::span<const i32> tokens);
  void let_go_from(Sequence& sequence, i32 first);
  i32 first_needed(i32 length) const;
  void let_go_unread(Sequence& sequence);

  i32 vocab_;
  PagePool pool_;
  AttentionCut reach_;
  std::vector<Sequence> sequences_;
};

// Pages that `sequences` sequences hold at most when one step adds `added` positions to them in all.
i64 most_pages(const Capacity& capacity, i32 sequences, i64 added);

}  // namespace heddle
