#include "heddle/tune/timing.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/tune/made_up.h"

namespace heddle::tune {
namespace {

Timing timed(const std::vector<double>& true_ns, u64 seed, const TimingRules& rules = {}) {
  MadeUpClock clock(seed);
  Timing timing(true_ns.size(), rules);
  while (const auto sample = timing.next()) timing.add(clock.sample(true_ns[sample->candidate]));
  return timing;
}

TEST(Timing, FindsThePlantedBestUnderNoise) {
  const std::vector<double> true_ns = {1100, 1040, 1000, 1060, 2000, 1500, 1030};
  int wrong = 0;
  for (u64 seed = 1; seed <= 200; ++seed) wrong += timed(true_ns, seed).best() != 2;
  EXPECT_LE(wrong, 2) << "of 200 searches, with others 3 % slower";
}

TEST(Timing, DropsClearLosersEarly) {
  std::vector<double> true_ns(20, 2000);
  true_ns[7] = 1000;
  const Timing timing = timed(true_ns, 1);
  EXPECT_EQ(timing.best(), 7u);
  const TimingRules rules;
  for (size_t c = 0; c < true_ns.size(); ++c) {
    if (c == 7) continue;
    EXPECT_EQ(timing.standing(c), Standing::kDropped);
    EXPECT_EQ(timing.rounds(c).size(), size_t(rules.drop_after));
  }
  // One warm-up and three samples each, then the best alone until it has its minimum of rounds.
  EXPECT_EQ(timing.samples(), 20 * (1 + rules.drop_after) + rules.least_rounds - rules.drop_after);
}

TEST(Timing, RepeatsAsLongAsTheSpreadHidesTheDecision) {
  const Timing clear = timed({1000, 1300}, 1), close = timed({1000, 1020}, 1);
  EXPECT_LT(clear.samples(), close.samples());
  EXPECT_GT(close.rounds(0).size(), size_t(TimingRules{}.least_rounds));
}

TEST(Timing, GivesATieToTheFirst) {
  for (u64 seed = 1; seed <= 50; ++seed) {
    const Timing timing = timed({1500, 1000, 1000, 1000}, seed, {.tie_within = 0.02});
    EXPECT_EQ(timing.best(), 1u) << seed;
    EXPECT_EQ(timing.standing(1), Standing::kBest);
    EXPECT_EQ(timing.standing(2), Standing::kTied);
  }
}

// A table with a best one of 1.00 and a slower one of 0.99 is wrong, however busy the machine was.
TEST(Timing, HasNoSlowerOneThatIsFasterByTheFigureShown) {
  std::mt19937_64 random(1);
  const TimingRules rules{.least_rounds = 3, .most_rounds = 12, .drop_after = 2};
  for (int run = 0; run < 300; ++run) {
    Timing timing(7, rules);
    while (timing.next()) timing.add(1000 * std::exp(std::normal_distribution<double>(0, 0.1)(random)));
    for (size_t c = 0; c < 7; ++c) {
      std::vector<double> ratios = timing.ratios(c);
      std::ranges::sort(ratios);
      const double ratio = (ratios[(ratios.size() - 1) / 2] + ratios[ratios.size() / 2]) / 2;
      if (timing.standing(c) == Standing::kBest) {
        EXPECT_DOUBLE_EQ(ratio, 1);
      }
      if (timing.standing(c) == Standing::kTied) {
        EXPECT_GT(ratio, 1 / (1 + rules.tie_within));
      }
      if (timing.standing(c) == Standing::kSlower) {
        EXPECT_GT(ratio, 1);
      }
    }
  }
}

TEST(Timing, TimesAllInEveryRoundWithBuffersInTurns) {
  TimingRules rules{.sample_ns = 3000, .buffers = 5};
  Timing timing(3, rules);
  int calls = 0;
  std::set<std::vector<size_t>> orders;
  std::vector<size_t> order;
  for (int i = 0; i < 3 * 6; ++i) {
    const Sample sample = timing.next().value();
    EXPECT_EQ(sample.calls, i < 3 ? 1 : 3) << "as many as last 3000 ns";
    EXPECT_EQ(sample.buffer, calls % 5);
    calls += sample.calls;
    order.push_back(sample.candidate);
    timing.add(1000);
    if (order.size() < 3) continue;
    EXPECT_EQ(std::set<size_t>(order.begin(), order.end()).size(), 3u) << "each once in a round";
    orders.insert(order);
    order.clear();
  }
  EXPECT_GT(orders.size(), 1u) << "the order differs from round to round";
}

TEST(Timing, NeverPicksWhatFailed) {
  for (int fails_at : {0, 2, 7}) {
    Timing timing(3, {});
    MadeUpClock clock(3);
    int of_fastest = 0;
    while (const auto sample = timing.next()) {
      if (sample->candidate == 1 && of_fastest++ == fails_at)
        timing.fail();
      else
        timing.add(clock.sample(sample->candidate == 1 ? 500 : sample->candidate == 0 ? 900 : 800));
      if (of_fastest > fails_at) continue;
    }
    if (timing.standing(1) == Standing::kBest) {
      EXPECT_LE(of_fastest, fails_at) << "it did not fail";
      continue;
    }
    EXPECT_EQ(timing.standing(1), Standing::kFailed);
    EXPECT_EQ(timing.best(), 2u) << fails_at;
  }
  Timing none(1, {});
  EXPECT_TRUE(none.next());
  none.fail();
  EXPECT_FALSE(none.next());
  EXPECT_FALSE(none.best());
}

TEST(Timing, HasBuffersThatLeaveTheCache) {
  EXPECT_EQ(buffers_for(50 << 20, 50 << 20), 3) << "twice the cache lies between two turns of a set";
  EXPECT_EQ(buffers_for(1 << 30, 50 << 20), 2);
  EXPECT_EQ(buffers_for(4096, 50 << 20), 64);
  EXPECT_THROW(buffers_for(0, 1), Error);
}

TEST(Timing, RefusesTimesThatCannotBe) {
  Timing timing(1, {});
  for (double ns : {0.0, -1.0, std::nan("")}) EXPECT_THROW(timing.add(ns), Error);
  EXPECT_THROW(Timing(1, {.least_rounds = 5, .most_rounds = 4}), Error);
}

}  // namespace
}  // namespace heddle::tune
