// Where the parts of the check put what they find.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "heddle/ir/check.h"

namespace heddle::proof {

// Keeps the first few faults: one mistake makes many, and the first is the one to read.
class Faults {
 public:
  static constexpr size_t kMost = 8;

  template <class... Args>
  void add(FaultKind kind, fmt::format_string<Args...> format, Args&&... args) {
    if (!full()) list_.push_back({kind, fmt::format(format, std::forward<Args>(args)...)});
  }
  bool full() const { return list_.size() >= kMost; }
  bool empty() const { return list_.empty(); }
  std::vector<Fault> take() { return std::move(list_); }

 private:
  std::vector<Fault> list_;
};

// "worker 3 #17 (layers.0.qkv [linear] tile [0, 1, 96, 192])"
inline std::string place_of(const Program& program, u32 worker, size_t index) {
  return fmt::format("worker {} #{} ({})", worker, index, program.describe(program.workers[worker][index]));
}

}  // namespace heddle::proof
