#include "heddle/schedule/schedule.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "heddle/base/error.h"

namespace heddle {
namespace {

// Two chains of nodes that meet: 0 -> 2, 1 -> 2, 2 -> 3; node 3 has homes.
ScheduleInput diamond() {
  ScheduleInput input;
  input.workers = 3;
  input.after = {{}, {}, {0, 1}, {2}};
  for (u32 node = 0; node < 4; ++node)
    for (i32 i = 0; i < 5; ++i) input.tiles.push_back({node, node == 3 ? i % 3 : kNoHome, 1.0 + i});
  return input;
}

class EveryScheduler : public testing::TestWithParam<const Scheduler*> {};

TEST_P(EveryScheduler, RunsEachTileOnceAtHomeAfterWhatItNeeds) {
  const ScheduleInput input = diamond();
  const Schedule schedule = GetParam()->run(input);
  ASSERT_EQ(schedule.workers.size(), input.workers);
  std::vector<int> seen(input.tiles.size());
  for (size_t w = 0; w < schedule.workers.size(); ++w) {
    const auto& order = schedule.workers[w];
    for (size_t i = 0; i < order.size(); ++i) {
      const ScheduleTile& tile = input.tiles[order[i]];
      ++seen[order[i]];
      EXPECT_TRUE(tile.home == kNoHome || size_t(tile.home) == w);
      for (size_t j = i + 1; j < order.size(); ++j) {
        const auto& after = input.after[tile.node];
        EXPECT_EQ(std::count(after.begin(), after.end(), input.tiles[order[j]].node), 0)
            << "a tile precedes one it needs";
      }
    }
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), long(seen.size()));
}

INSTANTIATE_TEST_SUITE_P(All, EveryScheduler,
                         testing::ValuesIn(all_schedulers().begin(), all_schedulers().end()),
                         [](const auto& param) { return std::string(param.param->name); });

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
