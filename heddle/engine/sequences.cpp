#include "heddle/engine/sequences.h"

#include <algorithm>
#include <utility>

#include "heddle/base/error.h"

namespace heddle {

Sequences::Sequences(i32 count, i32 vocab, PagePool pool)
    : vocab_(vocab), pool_(std::move(pool)), sequences_(size_t(count)) {}

SequenceId Sequences::open(const SamplingSettings& sampling, std::span<const i32> prompt) {
  const auto slot = std::ranges::find(sequences_, false, &Sequence::open);
  require(slot != sequences_.end(), "[engine] {} sequences are open; max_sequences allows no more",
          sequences_.size());
  *slot = {.open = true, .seen = std::vector<u32>(size_t(vocab_ + 31) / 32)};
  slot->sampling = {.temperature = sampling.temperature,
                    .top_p = sampling.top_p,
                    .min_p = sampling.min_p,
                    .repetition_penalty = sampling.repetition_penalty,
                    .top_k = sampling.top_k,
                    .seed = sampling.seed};
  if (prompt.size() > 1) {
    slot->pages = pool_.find(prompt.first(prompt.size() - 1));
    for (i32 page : slot->pages) pool_.hold(page);
    const auto kept = prompt.first(slot->pages.size() * size_t(pool_.page_size()));
    slot->tokens.assign(kept.begin(), kept.end());
    for (i32 token : kept) slot->see(token);
  }
  return SequenceId(slot - sequences_.begin());
}

void Sequences::close(SequenceId id) {
  Sequence& sequence = at(id);
  rewind(sequence, 0);
  sequence = {};
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
}

void Sequences::rewind(Sequence& sequence, i32 length) {
  i32 kept = std::min(length, sequence.length());
  const i32 size = pool_.page_size(), part = kept / size;
  if (kept % size != 0) {  // the page in the middle of which it would go on
    const i32 page = sequence.pages[size_t(part)];
    if (pool_.is_shared(page))
      kept = part * size;
    else
      pool_.forget(page);
  }
  while (i32(sequence.pages.size()) > pool_.pages_for(kept)) {  // the beginning, which others may want, last
    pool_.let_go(sequence.pages.back());
    sequence.pages.pop_back();
  }
  sequence.tokens.resize(size_t(kept));
  std::ranges::fill(sequence.seen, 0u);
  for (i32 token : sequence.tokens) sequence.see(token);
}

}  // namespace heddle
