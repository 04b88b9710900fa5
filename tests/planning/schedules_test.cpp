// For any graph and any policy, the program is proved, and all programs compute the same in every
// interleaving. HEDDLE_TEST_SCALE=20 takes 10,000 graphs.
#include <algorithm>
#include <array>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "heddle/ir/check/check.h"
#include "heddle/ir/program/print.h"
#include "heddle/schedule/schedule.h"
#include "tests/support/random_graph.h"
#include "tests/support/rounds.h"

namespace heddle {
namespace {

std::string first_fault(const CheckReport& report) {
  return report.ok() ? "" : fmt::format("{}: {}", name(report.faults[0].kind), report.faults[0].message);
}

TEST(Schedules, OfRandomGraphsAreProvedAndAgree) {
  const u64 graphs = rounds(500);
  u64 programs = 0, differ = 0;
  std::array<u64, 2> edges = {};
  for (u64 seed = 0; seed < graphs; ++seed) {
    const RandomGraph graph(seed);
    std::vector<std::byte> wanted;
    std::vector<std::string> streams;
    for (const Scheduler* scheduler : all_schedulers()) {
      const Program program = graph.program(scheduler->name);
      const CheckReport report = check(program);
      ASSERT_TRUE(report.ok()) << "seed " << seed << ", " << scheduler->name << ": " << first_fault(report);
      for (const auto& stream : program.workers)
        for (const Instruction& instruction : stream)
          for (int i = 0; i < kMaxWaits; ++i)
            if (instruction.waits[i].counter != kNoCounter) ++edges[size_t(instruction.wait_kind(i))];
      const u64 order = seed * 7 + programs % 7;
      const auto got = graph.result(
          program, 3, {.seed = order, .adversarial = order % 2 == 0, .stale_reads = programs % 3 != 0});
      if (wanted.empty()) wanted = got;
      ASSERT_EQ(got, wanted) << "seed " << seed << ", " << scheduler->name << "\n" << print_program(program);
      streams.push_back(serialise_program(program));
      ++programs;
    }
    std::sort(streams.begin(), streams.end());
    differ += u64(std::unique(streams.begin(), streams.end()) - streams.begin()) > 1;
  }
  fmt::print("{} graphs, {} programs; waits: {} in an SM, {} counted\n", graphs, programs, edges[0],
             edges[1]);
  EXPECT_GT(differ, graphs / 4) << "policies that all do the same say little";
  for (u64 count : edges) EXPECT_GT(count, graphs / 10);
}

}  // namespace
}  // namespace heddle
