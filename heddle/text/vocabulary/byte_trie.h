// Finds the strings of a set that begin a text.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle {

class ByteTrie {
 public:
  // `bytes`: the sum of the sizes of the strings that will be added, or more.
  explicit ByteTrie(size_t bytes)
      : slots_(std::bit_ceil(2 * bytes + 2)),
        shift_(64 - std::countr_zero(slots_.size())),
        values_(1, kNone) {}

  // Adds a string that is not empty, or replaces its value, which is not negative.
  void add(std::string_view text, int32_t value) {
    uint32_t node = 0;
    for (char byte : text) {
      Slot& slot = slot_of(key_of(node, byte));
      if (slot.key == 0) {
        slot = {key_of(node, byte), uint32_t(values_.size())};
        values_.push_back(kNone);
      }
      node = slot.node;
    }
    values_[node] = value;
  }

  // Calls found(size, value) for each string that `text` begins with, the shortest first.
  template <class Found>
  void for_each_prefix(std::string_view text, Found&& found) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const Slot& slot = slot_of(key_of(node, text[i]));
      if (slot.key == 0) return;
      node = slot.node;
      if (values_[node] != kNone) found(i + 1, values_[node]);
    }
  }

 private:
  static constexpr int32_t kNone = -1;
  struct Slot {
    uint64_t key = 0;  // 0: free
    uint32_t node = 0;
  };
  static uint64_t key_of(uint32_t node, char byte) { return (uint64_t{node} << 8 | uint8_t(byte)) + 1; }

  const Slot& slot_of(uint64_t key) const {
    size_t i = size_t(key * 0x9E3779B97F4A7C15u >> shift_);
    while (slots_[i].key != 0 && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    return slots_[i];
  }
  Slot& slot_of(uint64_t key) { return const_cast<Slot&>(std::as_const(*this).slot_of(key)); }

  std::vector<Slot> slots_;  // open addressing, a power of two of them
  int shift_;
  std::vector<int32_t> values_;  // by node; the root is node 0
};

}  // namespace heddle
