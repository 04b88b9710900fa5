#include "heddle/trace/summary.h"

#include <gtest/gtest.h>

#include "heddle/base/json.h"
#include "heddle/trace/test_timelines.h"

namespace heddle {
namespace {

TEST(TraceSummary, SplitsAWaitAtTheLastSignal) {
  const TraceSummary summary = summarise(two_workers());
  ASSERT_EQ(summary.work.size(), 2u);
  EXPECT_EQ(summary.steps, 2u);
  EXPECT_EQ(summary.units, 2u);
  EXPECT_DOUBLE_EQ(summary.step, 1500);
  const WorkTimes& use = summary.work[1];
  EXPECT_EQ(use.ops, "use more");
  EXPECT_DOUBLE_EQ(use.late, (700 + 200) / 4.0);  // means over two steps of two workers
  EXPECT_DOUBLE_EQ(use.hop, (100 + 100) / 4.0);
  EXPECT_DOUBLE_EQ(use.taken, 0);
  EXPECT_DOUBLE_EQ(use.starved, 300 / 4.0);
  EXPECT_DOUBLE_EQ(use.compute, (700 + 600) / 4.0);
  EXPECT_DOUBLE_EQ(use.signal, (100 + 100) / 4.0);
  EXPECT_DOUBLE_EQ(use.phase, (1100 + 700) / 2.0);
  EXPECT_DOUBLE_EQ(use.calls, 1);
  EXPECT_DOUBLE_EQ(summary.work[0].late, 1200 / 4.0) << "for the step before";
}

TEST(TraceSummary, GivesRatesOfTheTimeInBodies) {
  const TraceSummary summary = summarise(two_workers());
  const WorkTimes& use = summary.work[1];
  EXPECT_DOUBLE_EQ(use.bytes, 2000);
  EXPECT_DOUBLE_EQ(use.flops, 4000);
  EXPECT_DOUBLE_EQ(summary.busy(use), (1000 + 600) / 2.0 / 2) << "of a step, over two units";
  EXPECT_NE(to_text(summary).find("use more"), std::string::npos);
  EXPECT_NE(to_text(summary).find("GB/s"), std::string::npos);
}

// Every nanosecond of every worker belongs to a body or has a cause.
TEST(TraceSummary, AccountsForAllOfAStep) {
  const TraceSummary summary = summarise(two_workers());
  double idle = 0;
  for (const IdleCause& cause : idle_causes(summary)) idle += cause.ns;
  EXPECT_DOUBLE_EQ(idle + summary.total().compute, summary.step);
  EXPECT_DOUBLE_EQ(summary.outside, (100 + 800) / 4.0) << "worker 1 begins at 100, worker 0 ends 800 early";
}

TEST(TraceSummary, SaysWhenAnotherWorkerHadTheThread) {
  Timeline timeline = two_workers();
  timeline.trace.lanes[1].unit = 0;
  timeline.workers[0].stream.push_back({.call = 0});  // between the signal at 2200 and the second use at 2300
  timeline.trace.lanes[0].events.push_back({2200, 2210, 2270, 2280, 0, 1, 2});
  const TraceSummary summary = summarise(timeline);
  EXPECT_EQ(summary.units, 1u);
  EXPECT_DOUBLE_EQ(summary.work[1].taken, 70 / 4.0);
  EXPECT_DOUBLE_EQ(summary.work[1].hop, (100 + 30) / 4.0);
}

TEST(TraceSummary, CountsWhatFoundNoRoom) {
  Timeline timeline = two_workers();
  timeline.trace.lanes[1].lost = 5;
  const TraceSummary summary = summarise(timeline);
  EXPECT_EQ(summary.lost, 5u);
  EXPECT_NE(to_text(summary).find("5 events found no room"), std::string::npos);
}

TEST(TraceSummary, NamesWhatRanTheCalls) {
  Timeline timeline = two_workers();
  timeline.calls.push_back(
      {.op = 1, .node = "third", .body = "use_kernel.sm90 (rows=64), 8 CTAs of 128 threads"});
  timeline.calls.push_back({.op = 1, .node = "fourth", .body = timeline.calls[2].body});
  timeline.calls.push_back({.op = 0, .node = "fifth", .body = "tiles; no whole kernel because it is small"});
  EXPECT_EQ(
      body_lines(timeline),
      (std::vector<std::string>{"1 call of make: tiles; no whole kernel because it is small",
                                "2 calls of use more: use_kernel.sm90 (rows=64), 8 CTAs of 128 threads"}));
  for (const std::string& line : body_lines(timeline))
    EXPECT_NE(to_text(summarise(timeline)).find(line + "\n"), std::string::npos);
  EXPECT_TRUE(body_lines(two_workers()).empty());
}

TEST(TraceSummary, FitsEightyColumnsAndExplainsItsWords) {
  TraceSummary summary = summarise(two_workers());
  WorkTimes& long_one = summary.work.emplace_back(summary.work[1]);
  long_one.ops = "rms_norm linear rope kv_append and_a_word_that_is_longer_than_the_column swiglu";
  for (double* ns : {&long_one.fetch, &long_one.late, &long_one.hop, &long_one.starved, &long_one.compute,
                     &long_one.signal, &long_one.phase, &long_one.load, &long_one.path})
    *ns = 12'345'678;
  long_one.bytes = 2.4e9, long_one.flops = 9.9e11;
  const std::string text = to_text(summary);
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    EXPECT_LE(end - at, 80u) << text.substr(at, end - at);
    at = end + 1;
  }
  for (const char* word : {"swiglu\n", "12346", "all:", "late", "taken", "hop", "starved",
                           "phase:", "loader:", "path:", "busy:", "signalled"})
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  const Json json = to_json(summary);
  EXPECT_EQ(json.at("ops").size(), 3u);
  EXPECT_EQ(json.at("ops").items()[1].at("op"), "use more");
  EXPECT_EQ(json.at("ops").items()[1].at("phase_ns"), 900.0);
  EXPECT_EQ(json.at("steps"), 2);
}

TEST(TraceSummary, OfNothingIsEmpty) {
  EXPECT_EQ(summarise({}).steps, 0u);
  EXPECT_FALSE(to_text(summarise({})).empty());
}

TEST(CriticalPath, FollowsTheLastProducers) {
  const Timeline timeline = two_workers();
  const auto path = critical_path(timeline, Causes(timeline));
  std::vector<std::pair<u32, u32>> found;
  std::vector<u64> begins;
  for (const PathStep& step : path)
    found.push_back({step.by.lane, step.by.event}), begins.push_back(step.begin);
  EXPECT_EQ(found, (std::vector<std::pair<u32, u32>>{{0, 0}, {1, 0}, {0, 1}, {1, 1}}));
  EXPECT_EQ(begins, (std::vector<u64>{0, 800, 2000, 2200}));
  EXPECT_DOUBLE_EQ(summarise(timeline).total().path, 1500) << "all of a step lies on it";
}

TEST(CriticalPath, StaysOnTheThreadThatWasTaken) {
  Timeline timeline = two_workers();
  timeline.trace.lanes[1].unit = 0;
  timeline.workers[0].stream.push_back({.call = 0});
  timeline.trace.lanes[0].events.push_back({2200, 2210, 2270, 2280, 0, 1, 2});
  const auto path = critical_path(timeline, Causes(timeline));
  ASSERT_GE(path.size(), 2u);
  EXPECT_EQ(path[path.size() - 2].by.event, 2u) << "the thread ran it when the use could have begun";
  EXPECT_EQ(path.back().begin, 2280u);
}

}  // namespace
}  // namespace heddle
