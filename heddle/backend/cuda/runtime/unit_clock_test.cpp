#include "heddle/backend/cuda/runtime/unit_clock.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace heddle::cuda {
namespace {

constexpr u64 kStep = 1000;                        // ns of the shared clock
constexpr double kNominal = 1.83;                  // ticks of a nanosecond
constexpr double kRun = 6e6;                       // ns
constexpr u64 kStart = 1'763'900'000'000'000'007;  // ns, when it began: of this century

// Reads the clock of a unit that gains a microsecond on the nominal rate and loses it again within milliseconds.
u64 ticks_at(double ns) {
  return u64(1e12 + kNominal * (ns + 1000 * std::sin(ns / 7e5)));
}

std::vector<UnitClock::Reading> readings(int count, u64 seed) {
  std::mt19937_64 random(seed);
  std::vector<double> moments{0, kRun};
  for (int i = 2; i < count; ++i) moments.push_back(double(random() % 1'000'000) * kRun / 1e6);
  std::ranges::sort(moments);
  std::vector<UnitClock::Reading> made;
  for (const double ns : moments) made.push_back({ticks_at(ns), (kStart + u64(ns)) / kStep * kStep});
  return made;
}

double worst_error(const UnitClock& clock) {
  double worst = 0;
  for (i64 ns = 0; ns < i64(kRun); ns += 1234)
    worst = std::max(worst, std::abs(double(i64(clock.at(ticks_at(double(ns))) - kStart)) - double(ns)));
  return worst;
}

TEST(UnitClock, ManyReadingsFollowAClockThatDoesNotTickEvenly) {
  EXPECT_GT(worst_error(UnitClock(readings(2, 1))), 1000);
  for (u64 seed : {1, 2, 3}) EXPECT_LT(worst_error(UnitClock(readings(700, seed))), 400) << seed;
}

TEST(UnitClock, TimesNeverGoBack) {
  const UnitClock clock(readings(700, 4));
  u64 before = 0;
  for (i64 ns = 0; ns < i64(kRun); ns += 20) {
    const u64 now = clock.at(ticks_at(double(ns)));
    ASSERT_GE(now, before) << ns;
    before = now;
  }
}

TEST(UnitClock, OneReadingIsAllThatThereIs) {
  const std::vector<UnitClock::Reading> one{{100, 5000}};
  EXPECT_EQ(UnitClock(one).at(90), 5000u);
  EXPECT_EQ(UnitClock(one).at(300), 5000u);
}

TEST(UnitClock, BothEndsAreReadingsOfTheirOwn) {
  const std::vector<UnitClock::Reading> two{{100, 5000}, {300, 5100}};
  const UnitClock clock(two);
  EXPECT_EQ(clock.at(100), 5000u);
  EXPECT_EQ(clock.at(200), 5050u);
  EXPECT_EQ(clock.at(300), 5100u);
  EXPECT_DOUBLE_EQ(clock.span(10), 5);
}

}  // namespace
}  // namespace heddle::cuda
