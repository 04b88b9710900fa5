#include "heddle/base/progress.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(Progress, IsToldToTheInnermostScopeOfTheThread) {
  std::string told;
  const auto note = [&](const std::string& who) {
    return [&told, who](const Progress& p) { told += who + std::to_string(p.done) + " "; };
  };
  EXPECT_FALSE(has_progress_listener());
  tell_progress({"doing", "things", 1, 9});
  {
    const ProgressScope outer(note("outer"));
    tell_progress({"doing", "things", 2, 9});
    {
      const ProgressScope inner(note("inner"));
      tell_progress({"doing", "things", 3, 9});
      std::thread([] { tell_progress({"doing", "things", 4, 9}); }).join();
      const ProgressScope nobody(nullptr);
      EXPECT_FALSE(has_progress_listener());
    }
    tell_progress({"doing", "things", 5, 9});
  }
  EXPECT_FALSE(has_progress_listener());
  EXPECT_EQ(told, "outer2 inner3 outer5 ");
}

TEST(Progress, OfJobsRisesOnTheCallersThread) {
  std::vector<size_t> told;
  const auto here = std::this_thread::get_id();
  const ProgressScope scope([&](const Progress& p) {
    EXPECT_EQ(std::this_thread::get_id(), here);
    EXPECT_EQ(p.all, 7u);
    EXPECT_EQ(std::string(p.doing) + p.what, "compilingkernels");
    told.push_back(p.done);
  });
  std::atomic<int> ran = 0;
  parallel_for_with_progress("compiling", "kernels", 7, 2, [&](size_t) { ++ran; });
  EXPECT_EQ(ran, 7);
  ASSERT_FALSE(told.empty());
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_EQ(told.back(), 7u);
}

TEST(Progress, OfNoListenerCostsNothing) {
  const auto here = std::this_thread::get_id();
  parallel_for_with_progress("compiling", "kernels", 3, 1,
                             [&](size_t) { EXPECT_EQ(std::this_thread::get_id(), here); });
}

TEST(Progress, EndsTheWorkWhereTheListenerThrows) {
  std::atomic<int> ran = 0, may_end = 0;
  const auto work = [&] {
    const ProgressScope scope([&](const Progress&) {
      may_end = 1;
      throw std::runtime_error("no more");
    });
    parallel_for_with_progress("compiling", "kernels", 100'000, 1, [&](size_t) {
      ++ran;
      while (!may_end) std::this_thread::yield();
      std::this_thread::yield();
    });
  };
  EXPECT_THROW(work(), std::runtime_error);
  EXPECT_LT(ran, 100'000);
}

TEST(Progress, AJobsFaultIsTheCallers) {
  const ProgressScope scope([](const Progress&) {});
  EXPECT_THROW(parallel_for_with_progress("compiling", "kernels", 4, 2,
                                          [](size_t job) {
                                            if (job == 2) throw std::runtime_error("two");
                                          }),
               std::runtime_error);
}

TEST(Progress, TextSaysHowLongItWillTake) {
  ProgressText text;
  const auto of = [&](size_t done, double seconds) {
    return text.of({"compiling", "kernels", done, 47}, seconds);
  };
  EXPECT_EQ(of(0, 100), "compiling 0 of 47 kernels");
  EXPECT_EQ(of(1, 101), "compiling 1 of 47 kernels") << "too early";
  EXPECT_EQ(of(12, 160), "compiling 12 of 47 kernels, about 3 min left");
  EXPECT_EQ(of(12, 250), "compiling 12 of 47 kernels, about 85 s left") << "it counts down";
  EXPECT_EQ(of(12, 900), "compiling 12 of 47 kernels") << "later than thought";
  EXPECT_EQ(of(46, 330), "compiling 46 of 47 kernels, about 5 s left");
  EXPECT_EQ(text.of({"loading", "bytes", 0, 2'000'000}, 331), "loading 0 % of 2.0 MB") << "another work";
  EXPECT_EQ(text.of({"loading", "bytes", 1'000'000, 2'000'000}, 341),
            "loading 50 % of 2.0 MB, about 10 s left");
  EXPECT_EQ(text.of({"timing", "answers", 5, 5000}, 0), "timing 5 of 5000 answers");
  EXPECT_EQ(text.of({"timing", "answers", 6, 5000}, 10), "timing 6 of 5000 answers, about 13.9 h left");
}

}  // namespace
}  // namespace heddle
