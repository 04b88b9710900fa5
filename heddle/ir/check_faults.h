// Where the parts of the check put what they find.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "heddle/ir/check.h"

namespace heddle::proof {

// What the check holds a program to, beyond its form. Tests leave one rule out and see a fault pass.
enum class Rule : u8 {
  // Edges.
  kOneKindOfSignals,  // of a counter
  kCountersFill,      // a counter's producers make its total
  kTotalsInFull,      // and no more
  kSomebodySignals,   // what is waited for
  kWaitsInFull,
  kWaitsFit,  // the kind of the signals
  // Tiles and homes.
  kTilesCover,
  kTilesOnce,
  kHomesAlike,  // the homes of a buffer repeat alike
  kOneHome,
  kAtHome,
  kWorkerMemory,
  // Order.
  kOutputsWritten,
  kWritten,  // in this step, through this buffer, before it is read
  kReadAfterWrite,
  kReadAfterParts,  // of all who write a part of it by index
  kReadOfPages,     // after all of the step before
  kWriteAfterRead,
  kWriteAfterWrite,
  kCountersApart,  // of one step and the next
  kEnds,
};
constexpr int kNumRules = int(Rule::kEnds) + 1;

// Keeps the first few faults: one mistake makes many, and the first is the one to read.
class Faults {
 public:
  static constexpr size_t kMost = 8;

  Faults() = default;
  // As if the check did not know this rule.
  explicit Faults(std::optional<Rule> without) : without_(without) {}

  // Of the program's form.
  template <class... Args>
  void add(FaultKind kind, fmt::format_string<Args...> format, Args&&... args) {
    if (!full()) list_.push_back({kind, fmt::format(format, std::forward<Args>(args)...)});
  }
  template <class... Args>
  void add(Rule rule, FaultKind kind, fmt::format_string<Args...> format, Args&&... args) {
    if (rule == without_)
      ++left_out_;
    else
      add(kind, format, std::forward<Args>(args)...);
  }
  bool full() const { return list_.size() >= kMost; }
  bool empty() const { return list_.empty(); }
  bool left_out() const { return left_out_ > 0; }
  std::vector<Fault> take() { return std::move(list_); }

 private:
  std::optional<Rule> without_;
  size_t left_out_ = 0;
  std::vector<Fault> list_;
};

// "worker 3 #17 (layers.0.qkv [linear] tile [0, 1, 96, 192])"
inline std::string place_of(const Program& program, u32 worker, size_t index) {
  return fmt::format("worker {} #{} ({})", worker, index, program.describe(program.workers[worker][index]));
}

}  // namespace heddle::proof
