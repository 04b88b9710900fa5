#include "heddle/text/bpe.h"

#include <algorithm>
#include <bit>

#include "heddle/base/error.h"

namespace heddle {
namespace {

constexpr int32_t kMerged = -1;
constexpr int32_t kNoToken = -1;
constexpr uint64_t kEmptySlot = ~uint64_t{0};  // ids are not negative, so this is no pair

}  // namespace

Bpe::Bpe(StringToId tokens, const std::vector<Merge>& merges, Options options)
    : tokens_(std::move(tokens)), options_(options) {
  for (int byte = 0; byte < 256; ++byte) {
    const char text = char(byte);
    const auto found = tokens_.find(std::string_view(&text, 1));
    byte_token_[byte] = found == tokens_.end() ? kNoToken : found->second;
  }
  const size_t size = std::bit_ceil(2 * merges.size() + 2);
  shift_ = 64 - std::countr_zero(size);
  slots_.assign(size, {kEmptySlot, 0, 0});
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    insert({pair_of(merge.left, merge.right), uint32_t(rank), merge.result});
  }
}

// Of a pair that is listed twice the last rank counts, as in `tokenizers`.
void Bpe::insert(const Slot& slot) {
  size_t i = first_slot(slot.pair);
  while (slots_[i].pair != kEmptySlot && slots_[i].pair != slot.pair) i = (i + 1) & (slots_.size() - 1);
  slots_[i] = slot;
}

const Bpe::Slot* Bpe::find(int32_t left, int32_t right) const {
  const uint64_t pair = pair_of(left, right);
  for (size_t i = first_slot(pair);; i = (i + 1) & (slots_.size() - 1)) {
    if (slots_[i].pair == pair) return &slots_[i];
    if (slots_[i].pair == kEmptySlot) return nullptr;
  }
}

void Bpe::start(std::string_view word, Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  symbols.clear();
  bool after_unknown = false;
  for (char byte : word) {
    int32_t id = byte_token_[uint8_t(byte)];
    const bool unknown = id == kNoToken;
    const bool fused = unknown && after_unknown && options_.fuse_unknown;
    if (unknown && options_.unknown) id = *options_.unknown;
    after_unknown = unknown;
    if (id == kNoToken || fused) continue;
    const auto position = int32_t(symbols.size());
    symbols.push_back({id, position - 1, position + 1});
  }
  if (!symbols.empty()) symbols.back().next = -1;
}

// Queues the merge of the symbol at `position` with the next one, if the pair has one.
void Bpe::consider(int32_t position, Scratch& scratch) const {
  if (position < 0) return;
  const auto& symbol = scratch.symbols[size_t(position)];
  if (symbol.next < 0) return;
  const int32_t right = scratch.symbols[size_t(symbol.next)].id;
  const Slot* slot = find(symbol.id, right);
  if (!slot) return;
  scratch.queue.push_back({uint64_t{slot->rank} << 32 | uint32_t(position), symbol.id, right});
}

void Bpe::encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& out) const {
  if (options_.ignore_merges) {
    if (const auto found = tokens_.find(word); found != tokens_.end()) {
      out.push_back(found->second);
      return;
    }
  }
  require(word.size() < size_t{INT32_MAX}, "[tokenizer] a word of {} bytes; 2 GB is the most", word.size());
  start(word, scratch);
  auto& symbols = scratch.symbols;
  auto& queue = scratch.queue;
  const auto later = [](const auto& a, const auto& b) { return a.key > b.key; };
  queue.clear();
  for (size_t i = 0; i < symbols.size(); ++i) consider(int32_t(i), scratch);
  std::ranges::make_heap(queue, later);
  auto push = [&](int32_t position) {
    const size_t before = queue.size();
    consider(position, scratch);
    if (queue.size() > before) std::ranges::push_heap(queue, later);
  };
  while (!queue.empty()) {
    std::ranges::pop_heap(queue, later);
    const auto top = queue.back();
    queue.pop_back();
    const auto position = int32_t(uint32_t(top.key));
    auto& left = symbols[size_t(position)];
    // A neighbour may have changed since this was queued.
    if (left.id != top.left || left.next < 0 || symbols[size_t(left.next)].id != top.right) continue;
    auto& right = symbols[size_t(left.next)];
    left.id = find(top.left, top.right)->result;
    left.next = right.next;
    right.id = kMerged;
    if (left.next >= 0) symbols[size_t(left.next)].previous = position;
    push(left.previous);
    push(position);
  }
  for (const auto& symbol : symbols) {
    if (symbol.id != kMerged) out.push_back(symbol.id);
  }
}

}  // namespace heddle
