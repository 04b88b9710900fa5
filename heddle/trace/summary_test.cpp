#include "heddle/trace/summary.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

// Worker 0 makes what worker 1 waits for.
Program two_workers() {
  Program program;
  program.opcodes = {{.ops = {"make"}}, {.ops = {"use", "more"}}};
  Instruction make{.opcode = 0, .call = 0, .signal = {0, 1}};
  Instruction use{.opcode = 1, .call = 1, .waits = {{0, 1}}};
  program.workers = {{make, Instruction{}}, {use, Instruction{}}};
  return program;
}

TraceLane lane(u32 worker, TraceEvent event) {
  return {.worker = worker, .events = {event}};
}

TEST(TraceSummary, SplitsAWaitAtTheLastSignal) {
  const Trace trace{
      {lane(0, {.fetched = 0, .ready = 0, .computed = 700, .done = 800, .epoch = 1}),
       lane(1, {.fetched = 100, .ready = 900, .computed = 1900, .done = 2000, .starved = 300, .epoch = 1})}};
  const TraceSummary summary = summarise(two_workers(), trace);
  ASSERT_EQ(summary.work.size(), 2u);
  EXPECT_EQ(summary.steps, 1u);
  EXPECT_DOUBLE_EQ(summary.step, 2000);
  const WorkTimes& use = summary.work[1];
  EXPECT_EQ(use.ops, "use more");
  EXPECT_DOUBLE_EQ(use.late, 700 / 2.0);  // means over two workers
  EXPECT_DOUBLE_EQ(use.hop, 100 / 2.0);
  EXPECT_DOUBLE_EQ(use.starved, 300 / 2.0);
  EXPECT_DOUBLE_EQ(use.compute, 700 / 2.0);
  EXPECT_DOUBLE_EQ(use.signal, 100 / 2.0);
  EXPECT_DOUBLE_EQ(use.phase, 1100);
}

TEST(TraceSummary, CountsWhatFoundNoRoom) {
  TraceLane full = lane(0, {.fetched = 1, .ready = 1, .computed = 2, .done = 3, .epoch = 7});
  full.lost = 5;
  const TraceSummary summary = summarise(two_workers(), {{full}});
  EXPECT_EQ(summary.lost, 5u);
  EXPECT_NE(to_text(summary).find("5 events found no room"), std::string::npos);
}

TEST(TraceSummary, OfNothingIsEmpty) {
  EXPECT_EQ(summarise(two_workers(), {}).steps, 0u);
}

}  // namespace
}  // namespace heddle
