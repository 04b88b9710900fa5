#include "heddle/backend/cpu/call_pool.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace heddle {
namespace {

// Calls that follow each other at once, and some after the helpers have gone to sleep.
TEST(CallPool, DoesEachPieceOnceHoweverCallsFollowEachOther) {
  for (int call = 0; call < 2000; ++call) {
    if (call % 200 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::vector<std::atomic<int>> times(size_t(call % 7));
    share_work(1 + call % 4, i64(times.size()), [&](i64 i) { ++times[size_t(i)]; });
    for (const std::atomic<int>& one : times) ASSERT_EQ(one, 1) << call;
  }
}

TEST(CallPool, ServesSeveralCallersAtOnce) {
  std::atomic<i64> sum = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int call = 0; call < 300; ++call) share_work(3, 5, [&](i64 i) { sum += i; });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 300 * 10);
}

TEST(CallPool, ThrowsWhatAPieceThrowsAndGoesOn) {
  for (int call = 0; call < 50; ++call) {
    EXPECT_THROW(share_work(3, 8,
                            [](i64 i) {
                              if (i == 5) throw std::runtime_error("five");
                            }),
                 std::runtime_error);
    std::atomic<int> count = 0;
    share_work(3, 8, [&](i64) { ++count; });
    EXPECT_EQ(count, 8);
  }
}

}  // namespace
}  // namespace heddle
