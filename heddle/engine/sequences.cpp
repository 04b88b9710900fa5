#include "heddle/engine/sequences.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/ir/score_edits.h"

namespace heddle {

Sequences::Sequences(i32 count, i32 vocab, PagePool pool, const AttentionCut& reach, bool recurrent)
    : vocab_(vocab),
      pool_(std::move(pool)),
      reach_(reach),
      recurrent_(recurrent),
      sequences_(size_t(count)) {}

std::vector<i32> Sequences::find(std::span<const i32> tokens) const {
  return recurrent_ ? std::vector<i32>() : pool_.find(tokens);
}

namespace {

// `draws`: choices that come before those that `not_before` counts.
std::vector<float> edits_of(const SamplingSettings& sampling, i32 vocab, u32 draws) {
  static_assert(ScoreEdits::kBias == 0 && ScoreEdits::kCount == 1 && ScoreEdits::kPlanes == 2);
  if (sampling.presence_penalty == 0 && sampling.frequency_penalty == 0 && sampling.bias.empty() &&
      sampling.not_before.empty())
    return {};
  std::vector<float> edits(size_t(vocab) * ScoreEdits::kPlanes);
  const auto at = [&](i32 plane, i32 token) -> float& {
    require(token >= 0 && token < vocab, "[sampling] token {}; the vocabulary has 0 to {}", token, vocab - 1);
    return edits[size_t(plane) * size_t(vocab) + size_t(token)];
  };
  for (const auto& [token, bias] : sampling.bias) at(ScoreEdits::kBias, token) += bias;
  for (const auto& [token, choices] : sampling.not_before) {
    float& count = at(ScoreEdits::kCount, token);
    count = std::min(count, -float(draws + u32(choices)));
  }
  return edits;
}

void set_penalties(Sequence& sequence, const SamplingSettings& sampling) {
  sequence.sampling.presence_penalty = sampling.presence_penalty;
  sequence.sampling.frequency_penalty = sampling.frequency_penalty;
  sequence.sampling.edited = sequence.edits.empty() ? 0 : ScoreEdits::kByPlanes;
  sequence.edits_lie_there = false;
}

}  // namespace

bool Sequence::has_choice() const {
  const size_t vocab = edits.size() / 2;
  for (size_t token = 0; token < vocab; ++token)
    if (edits[token] > -INFINITY && float(draws) >= -edits[vocab + token]) return true;
  return edits.empty();
}

SequenceId Sequences::open(const SamplingSettings& sampling, std::span<const i32> prompt) {
  const auto slot = std::ranges::find(sequences_, false, &Sequence::open);
  require(slot != sequences_.end(), "[engine] {} sequences are open; max_sequences allows no more",
          sequences_.size());
  std::vector<float> edits = edits_of(sampling, vocab_, 0);
  *slot = {
      .open = true, .seen = std::vector<u32>(size_t(vocab_ + 31) / 32), .draws = u32(sampling.chosen.size())};
  slot->sampling = {.temperature = sampling.temperature,
                    .top_p = sampling.top_p,
                    .min_p = sampling.min_p,
                    .repetition_penalty = sampling.repetition_penalty,
                    .top_k = sampling.top_k,
                    .slot = i32(slot - sequences_.begin()),
                    .seed = sampling.seed};
  slot->edits = std::move(edits);
  set_penalties(*slot, sampling);
  for (const i32 token : sampling.chosen) slot->count(token);
  if (!prompt.empty()) begin(*slot, prompt.first(prompt.size() - 1));
  return SequenceId(slot - sequences_.begin());
}

// Takes the pages that already hold the beginning of `tokens`.
void Sequences::begin(Sequence& sequence, std::span<const i32> tokens) {
  sequence.pages = find(tokens);
  const auto kept = tokens.first(sequence.pages.size() * size_t(pool_.page_size()));
  sequence.tokens.assign(kept.begin(), kept.end());
  sequence.see_again();
  for (i32 page : sequence.pages) pool_.hold(page);
  let_go_unread(sequence);
}

void Sequences::begin_answer(Sequence& sequence, const SamplingSettings& sampling) const {
  sequence.edits = edits_of(sampling, vocab_, sequence.draws);
  set_penalties(sequence, sampling);
}

void Sequences::close(SequenceId id) {
  Sequence& sequence = at(id);
  rewind(sequence, 0);
  sequence = {};
}

void Sequences::forget_pages() {
  const auto open = std::ranges::count(sequences_, true, &Sequence::open);
  require(open == 0, "[engine] {} sequences are open, with keys and values of the old weights; close them",
          open);
  pool_.forget_all();
}

Sequence& Sequences::at(SequenceId id) {
  require(id < sequences_.size() && sequences_[id].open, "[step] sequence {} is not open", id);
  return sequences_[id];
}

void Sequences::grow(Sequence& sequence, i32 positions) {
  while (i32(sequence.pages.size()) < pool_.pages_for(positions)) sequence.pages.push_back(pool_.take());
}

void Sequences::extend(Sequence& sequence, std::span<const i32> tokens) {
  const size_t size = size_t(pool_.page_size());
  size_t full = sequence.tokens.size() / size;
  sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.end());
  for (i32 token : tokens) sequence.see(token);
  while ((full + 1) * size <= sequence.tokens.size()) {
    ++full;
    pool_.note(std::span(sequence.pages).first(full), std::span(sequence.tokens).first(full * size));
  }
  let_go_unread(sequence);
}

// The first page that a sequence of this length still needs: the first page that steps read, but at latest the
// page before the next one, because noting the next page needs it.
i32 Sequences::first_needed(i32 length) const {
  const i32 size = pool_.page_size();
  return std::max(std::min(first_read(reach_, length), length - size), 0) / size;
}

void Sequences::let_go_unread(Sequence& sequence) {
  const i32 needed = first_needed(sequence.length() - pool_.page_size());
  for (; sequence.gone < needed; ++sequence.gone)
    pool_.let_go(std::exchange(sequence.pages[size_t(sequence.gone)], -1));
}

void Sequences::let_go_from(Sequence& sequence, i32 first) {
  while (i32(sequence.pages.size()) > first) {  // released last: other sequences may want the beginning
    if (sequence.pages.back() >= 0) pool_.let_go(sequence.pages.back());
    sequence.pages.pop_back();
  }
  sequence.gone = std::min(sequence.gone, first);
}

void Sequences::rewind(Sequence& sequence, i32 length) {
  const i32 size = pool_.page_size();
  i32 kept = std::min(length, sequence.length());
  if (recurrent_ && kept < sequence.length()) kept = 0;
  const i32 at = kept / size;  // the sequence would continue in the middle of this page
  if (kept % size != 0 && at >= sequence.gone && pool_.is_shared(sequence.pages[size_t(at)]))
    kept = at * size;
  if (sequence.gone > first_needed(kept)) {
    const std::vector<i32> tokens(sequence.tokens.begin(), sequence.tokens.begin() + kept);
    let_go_from(sequence, 0);
    return begin(sequence, tokens);
  }
  if (kept % size != 0) pool_.forget(sequence.pages[size_t(at)]);
  let_go_from(sequence, pool_.pages_for(kept));
  sequence.tokens.resize(size_t(kept));
  sequence.see_again();
}

i64 most_pages(const Capacity& capacity, i32 sequences, i64 added) {
  const i64 size = capacity.page_size, all = i64(sequences) * capacity.pages_per_sequence;
  if (capacity.window == 0) return all;
  // Between steps: the range that is read, a page to rewind by, and partial pages at both ends. A step may
  // begin one more page for each sequence, besides those that it fills.
  const i64 read = i64(capacity.window) + capacity.splits.unit, each = (read + size - 1) / size + 3;
  return std::min(all, sequences * (each + 1) + (added + size - 1) / size);
}

}  // namespace heddle
