#include "heddle/schedule/schedule.h"

#include <algorithm>
#include <random>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "heddle/base/error.h"

namespace heddle {
namespace {

// Two chains of nodes that meet: 0 -> 2, 1 -> 2, 2 -> 3. Node 3 has homes.
ScheduleInput diamond() {
  ScheduleInput input;
  input.workers = 3;
  input.after = {{}, {}, {0, 1}, {2}};
  input.op = {0, 1, 0, 1};
  for (u32 node = 0; node < 4; ++node)
    for (i32 i = 0; i < 5; ++i)
      input.tiles.push_back({node, node == 3 ? i % 3 : kNoHome, 1.0 + i, i % 2 == 0});
  return input;
}

// `counts` tiles of cost 1 for each node; none has a home.
ScheduleInput free_tiles(u32 workers, std::vector<std::vector<u32>> after, const std::vector<u32>& counts) {
  ScheduleInput input{.workers = workers, .after = std::move(after)};
  for (u32 node = 0; node < counts.size(); ++node) {
    input.op.push_back(0);
    for (u32 i = 0; i < counts[node]; ++i) input.tiles.push_back({node, kNoHome, 1, false});
  }
  return input;
}

using Streams = std::vector<std::vector<u32>>;

Streams run(const char* policy, const ScheduleInput& input) {
  return get_scheduler(policy).run(input).workers;
}

class EveryScheduler : public testing::TestWithParam<const Scheduler*> {};

// Expects each tile once, at home, and one order for all workers that respects what tiles need.
void expect_legal(const ScheduleInput& input, const Schedule& schedule, const std::string& what) {
  ASSERT_EQ(schedule.workers.size(), input.workers) << what;
  std::vector<u32> left(input.after.size());
  for (const ScheduleTile& tile : input.tiles) ++left[tile.node];
  const auto ready = [&](u32 t) {
    const auto& after = input.after[input.tiles[t].node];
    return std::all_of(after.begin(), after.end(), [&](u32 node) { return left[node] == 0; });
  };
  std::vector<size_t> next(input.workers);
  size_t ran = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (u32 w = 0; w < input.workers; ++w)
      for (; next[w] < schedule.workers[w].size() && ready(schedule.workers[w][next[w]]); ++next[w], ++ran) {
        const ScheduleTile& tile = input.tiles[schedule.workers[w][next[w]]];
        EXPECT_TRUE(tile.home == kNoHome || u32(tile.home) == w) << what;
        ASSERT_GT(left[tile.node]--, 0u) << what << ": a tile twice";
        moved = true;
      }
  }
  EXPECT_EQ(ran, input.tiles.size()) << what << ": tiles that never can run, or are missing";
}

TEST_P(EveryScheduler, RunsEachTileOnceAtHomeAfterWhatItNeeds) {
  const ScheduleInput input = diamond();
  expect_legal(input, GetParam()->run(input), "diamond");
}

TEST_P(EveryScheduler, TakesAnyGraph) {
  std::mt19937 random(7);
  const auto pick = [&](u32 n) { return u32(random() % n); };
  for (int round = 0; round < 500; ++round) {
    ScheduleInput input{.workers = 1 + pick(9), .message = double(pick(3))};
    const u32 nodes = 1 + pick(12);
    for (u32 n = 0; n < nodes; ++n) {
      input.op.push_back(pick(3));
      auto& after = input.after.emplace_back();
      for (u32 before = 0; before < n; ++before)
        if (pick(3) == 0) after.push_back(before);
      const bool homes = pick(2) == 0;
      for (u32 i = 1 + pick(20); i > 0; --i)
        input.tiles.push_back({n, homes ? i32(pick(input.workers)) : kNoHome, double(pick(4)), pick(2) == 0});
    }
    expect_legal(input, GetParam()->run(input), fmt::format("round {}", round));
  }
}

TEST_P(EveryScheduler, TakesNoTilesAtAll) {
  EXPECT_EQ(GetParam()->run({.workers = 2}).workers, Streams(2));
}

INSTANTIATE_TEST_SUITE_P(All, EveryScheduler,
                         testing::ValuesIn(all_schedulers().begin(), all_schedulers().end()),
                         [](const auto& param) { return std::string(param.param->name); });

TEST(Schedulers, AreSeven) {
  EXPECT_EQ(all_schedulers().size(), 7u);
}

TEST(Schedulers, BackwardDelaysWhatNothingWaitsFor) {
  // No node reads node 0; node 2 reads node 1.
  const ScheduleInput input = free_tiles(1, {{}, {}, {1}}, {1, 1, 1});
  EXPECT_EQ(run("backward", input), (Streams{{1, 0, 2}}));
  EXPECT_EQ(run("level_batched", input), (Streams{{0, 1, 2}}));
}

TEST(Schedulers, RoundRobinAndZigzag) {
  const ScheduleInput input = free_tiles(3, {{}}, {7});
  EXPECT_EQ(run("round_robin", input), (Streams{{0, 3, 6}, {1, 4}, {2, 5}}));
  EXPECT_EQ(run("zigzag", input), (Streams{{0, 5, 6}, {1, 4}, {2, 3}}));
  ScheduleInput dear = input;
  dear.tiles[6].cost = 9;
  EXPECT_EQ(run("zigzag", dear), (Streams{{6, 4, 5}, {0, 3}, {1, 2}}));
}

TEST(Schedulers, WaveKeepsOneOpTogether) {
  ScheduleInput input = free_tiles(1, {{}, {}, {}}, {1, 1, 1});
  input.op = {0, 1, 0};
  EXPECT_EQ(run("wave", input), (Streams{{0, 2, 1}}));
  // The most expensive tiles come first, each on the worker with the least work so far.
  input = free_tiles(2, {{}}, {3});
  input.tiles[2].cost = 5;
  EXPECT_EQ(run("wave", input), (Streams{{2}, {0, 1}}));
}

TEST(Schedulers, DagTakesTheLongestWayFirst) {
  // Node 1 begins a chain, 0 and 2 do not.
  const ScheduleInput input = free_tiles(1, {{}, {}, {}, {1}, {3}}, {1, 1, 1, 1, 1});
  EXPECT_EQ(run("dag", input), (Streams{{1, 3, 0, 2, 4}}));
}

// The least loaded worker is not the one that could begin first: worker 0 has a tile that becomes ready late.
TEST(Schedulers, DagFillsTheTimeUntilATileIsReady) {
  ScheduleInput input{.workers = 2, .message = 0, .after = {{}, {0}, {}}, .op = {0, 0, 0}};
  input.tiles = {{0, 1, 10, false}, {1, 0, 1, false}, {2, 0, 4, false}, {2, 0, 4, false}};
  EXPECT_EQ(run("dag", input), (Streams{{2, 3, 1}, {0}}));
}

TEST(Schedulers, PoolParts) {
  ScheduleInput input = free_tiles(4, {{}}, {8});
  for (size_t i = 0; i < 4; ++i) input.tiles[i].memory_bound = true;
  EXPECT_EQ(run("pool", input), (Streams{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  for (ScheduleTile& tile : input.tiles) tile.memory_bound = true;
  EXPECT_EQ(run("pool", input), (Streams{{0, 4}, {1, 5}, {2, 6}, {3, 7}})) << "of one kind all take part";
}

TEST(Schedulers, UnknownNameNamesTheKnown) {
  try {
    get_scheduler("fifo");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("level_batched"), std::string::npos);
  }
}

}  // namespace
}  // namespace heddle
