// Collects the faults that the parts of the check find.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "heddle/ir/check/report.h"
#include "heddle/ir/program/program.h"

namespace heddle::proof {

// The rules that the check applies after the program's form. Tests leave out one rule at a time and see a
// planted fault pass.
enum class Rule : u8 {
  // Edges.
  kOneKindOfSignals,  // all signals of a counter have one kind
  kCountersFill,      // a counter's producers reach its total
  kTotalsInFull,      // and do not exceed it
  kSomebodySignals,   // a counter that is waited for has a producer
  kWaitsInFull,
  kWaitsFit,  // a wait fits the kind of the signals
  // Tiles and homes.
  kTilesCover,
  kTilesOnce,
  kHomesAlike,  // the homes of a buffer have one period
  kOneHome,
  kAtHome,
  kWorkerMemory,
  // Order.
  kOutputsWritten,
  kWritten,  // in this step and through this buffer, before it is read
  kReadAfterWrite,
  kReadAfterParts,  // a read comes after all indexed writes of a part of it
  kReadOfPages,     // a read of pages comes after all writes of the previous step
  kWriteAfterRead,
  kWriteAfterWrite,
  kCountersApart,  // counters of one step and of the next
  kEnds,
};
constexpr int kNumRules = int(Rule::kEnds) + 1;

// Keeps the first few faults. One mistake causes many faults, and the first is the one to read.
class Faults {
 public:
  static constexpr size_t kMost = 8;

  Faults() = default;
  // Makes the check ignore this rule.
  explicit Faults(std::optional<Rule> without) : without_(without) {}

  // Adds a fault of the program's form.
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

// A place in a program: "worker 3 #17 (layers.0.qkv [linear] tile [0, 1, 96, 192])".
inline std::string place_of(const Program& program, u32 worker, size_t index) {
  return fmt::format("worker {} #{} ({})", worker, index, program.describe(program.workers[worker][index]));
}

}  // namespace heddle::proof
