#include "heddle/text/vocabulary/bpe.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/text/unicode/utf8.h"
#include "heddle/text/vocabulary/caching_encoder.h"

namespace heddle {
namespace {

constexpr int32_t kMerged = -1;
constexpr int32_t kNoToken = -1;
constexpr uint64_t kEmptySlot = ~uint64_t{0};  // ids are not negative, so this is no pair
// with some 100,000 pairs, one in 40 other pairs is mistaken for one of them
constexpr size_t kJointBits = size_t{1} << 22;

size_t joint_of(uint32_t left, uint32_t right) {
  const uint64_t pair = uint64_t{left} << 32 | right;
  return size_t(pair * 0x9E3779B97F4A7C15u >> 42);
}

}  // namespace

Bpe::Bpe(StringToId tokens, const std::vector<Merge>& merges, Options options)
    : tokens_(std::move(tokens)), options_(std::move(options)) {
  for (int byte = 0; byte < 256; ++byte) {
    const char text = char(byte);
    const auto found = tokens_.find(std::string_view(&text, 1));
    byte_token_[byte] = found == tokens_.end() ? kNoToken : found->second;
  }
  if (options_.byte_fallback) read_fallback();
  const bool plain = options_.prefix.empty() && options_.suffix.empty();
  if (options_.by_characters && plain) find_joints(merges);
  const size_t size = std::bit_ceil(2 * merges.size() + 2);
  shift_ = 64 - std::countr_zero(size);
  slots_.assign(size, {kEmptySlot, 0, 0});
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    insert({pair_of(merge.left, merge.right), uint32_t(rank), merge.result});
  }
}

std::unique_ptr<WordEncoder> Bpe::encoder(std::vector<int32_t>& out) const {
  return std::make_unique<CachingEncoder<Bpe>>(*this, out);
}

// If a pair is listed twice, its last rank counts, as in `tokenizers`.
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

void Bpe::read_fallback() {
  always_known_ = true;
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = tokens_.find(fmt::format("<0x{:02X}>", byte));
    if (found != tokens_.end()) fallback_[byte] = found->second;
    always_known_ &= found != tokens_.end();
  }
}

// Merges of tokens that do not stand for their own text (bytes, unknown characters) could join any pair. If
// there is such a merge, words are not split.
void Bpe::find_joints(const std::vector<Merge>& merges) {
  std::unordered_map<int32_t, std::string_view> texts;
  for (const auto& [text, id] : tokens_) texts.emplace(id, text);
  std::vector<uint64_t> joints(kJointBits / 64);
  for (const Merge& merge : merges) {
    for (int32_t part : {merge.left, merge.right}) {
      const bool stands_for_byte = std::ranges::find(fallback_, std::optional(part)) != std::end(fallback_);
      if (stands_for_byte || part == options_.unknown) return;
    }
    std::string_view text = texts[merge.result];
    for (uint32_t left = 0, first = true; !text.empty(); first = false) {
      const Utf8Char c = first_char(text);
      const size_t bit = joint_of(left, c.code_point);
      if (!first) joints[bit / 64] |= uint64_t{1} << bit % 64;
      left = c.code_point;
      text.remove_prefix(c.size);
    }
  }
  joints_ = std::move(joints);
}

// Unknown characters may be joined with their neighbours.
bool Bpe::joined(uint32_t left, uint32_t right) const {
  const size_t bit = joint_of(left, right);
  if (joints_[bit / 64] >> bit % 64 & 1) return true;
  if (always_known_) return false;
  const auto known = [&](uint32_t c) {
    std::string text;
    append_utf8(c, text);
    return tokens_.contains(text);
  };
  return !known(left) || !known(right);
}

size_t Bpe::part_end(std::string_view word, size_t begin) const {
  // A part that is a token must not be taken for a word that is one.
  if (joints_.empty() || options_.ignore_merges || begin == word.size()) return word.size();
  Utf8Char left = first_char(word.substr(begin));
  size_t end = begin + left.size;
  while (end < word.size()) {
    const Utf8Char right = first_char(word.substr(end));
    if (!joined(left.code_point, right.code_point)) break;
    left = right;
    end += right.size;
  }
  return end;
}

void Bpe::start(std::string_view word, Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  symbols.clear();
  if (options_.by_characters) {
    start_characters(word, scratch);
  } else {
    start_bytes(word, scratch);
  }
  for (size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].previous = int32_t(i) - 1;
    symbols[i].next = i + 1 < symbols.size() ? int32_t(i) + 1 : -1;
  }
}

void Bpe::start_bytes(std::string_view word, Scratch& scratch) const {
  bool after_unknown = false;
  for (char byte : word) {
    int32_t id = byte_token_[uint8_t(byte)];
    const bool unknown = id == kNoToken;
    const bool fused = unknown && after_unknown && options_.fuse_unknown;
    if (unknown && has_unknown()) id = *options_.unknown;
    after_unknown = unknown;
    if (id != kNoToken && !fused) scratch.symbols.push_back({id, -1, -1});
  }
}

// Asked where something is unknown.
bool Bpe::has_unknown() const {
  if (!options_.missing_unknown.empty()) {
    fail(ErrorCode::kUnsupported,
         "[tokenizer] a character is unknown, and model.unk_token '{}' is not in model.vocab; a tokenizer "
         "that encodes any text has it",
         options_.missing_unknown);
  }
  return options_.unknown.has_value();
}

// A character as tokens write it at its place in a word.
std::string_view Bpe::written(std::string_view c, bool first, bool last, std::string& memory) const {
  const bool before = !first && !options_.prefix.empty(), after = last && !options_.suffix.empty();
  if (!before && !after) return c;
  memory.assign(before ? options_.prefix : "").append(c).append(after ? options_.suffix : "");
  return memory;
}

// As in `tokenizers`, an unknown token is emitted at the next known character, after bytes that come first.
void Bpe::start_characters(std::string_view word, Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  std::string memory;
  bool waiting = false, first = true;
  const auto flush = [&] {
    if (waiting) symbols.push_back({*options_.unknown, -1, -1});
    waiting = false;
  };
  while (!word.empty()) {
    const std::string_view plain = word.substr(0, first_char(word).size);
    word.remove_prefix(plain.size());
    const std::string_view c = written(plain, std::exchange(first, false), word.empty(), memory);
    if (const auto found = tokens_.find(c); found != tokens_.end()) {
      flush();
      symbols.push_back({found->second, -1, -1});
      continue;
    }
    const bool falls_back = options_.byte_fallback &&
                            std::ranges::all_of(c, [&](char b) { return fallback_[uint8_t(b)].has_value(); });
    if (falls_back) {
      for (char byte : c) symbols.push_back({*fallback_[uint8_t(byte)], -1, -1});
    } else if (has_unknown()) {
      if (!options_.fuse_unknown) flush();
      waiting = true;
    }
  }
  flush();
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
