#include "heddle/base/parallel.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace heddle {
namespace {

TEST(Parallel, RunsEachJobOnce) {
  for (size_t jobs : {size_t{0}, size_t{1}, size_t{3}, size_t{1000}}) {
    std::vector<std::atomic<int>> ran(jobs);
    parallel_for(jobs, 4, [&](size_t job) { ++ran[job]; });
    for (const std::atomic<int>& times : ran) EXPECT_EQ(times, 1);
  }
}

TEST(Parallel, KeepsToItsThreads) {
  std::set<std::thread::id> seen;
  parallel_for(100, 1, [&](size_t) { seen.insert(std::this_thread::get_id()); });
  EXPECT_EQ(seen, std::set{std::this_thread::get_id()});

  std::atomic<int> now = 0, most = 0;
  parallel_for(64, 3, [&](size_t) {
    const int running = ++now;
    for (int before = most; before < running && !most.compare_exchange_weak(before, running);) continue;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    --now;
  });
  EXPECT_LE(most, 3);
}

TEST(Parallel, ThrowsWhatTheLowestJobThrew) {
  std::atomic<size_t> ran = 0;
  try {
    parallel_for(100'000, 4, [&](size_t job) {
      ++ran;
      if (job >= 7) throw std::runtime_error(std::to_string(job));
    });
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "7");
  }
  EXPECT_LT(ran, 100u) << "jobs began after one had failed";
}

TEST(Parallel, RunsTogether) {
  std::atomic<int> there = 0;
  std::vector<std::atomic<int>> ran(4);
  const int started = run_together(4, [&](int thread, int all) {
    ++there;
    while (there < all) std::this_thread::yield();  // ends only if all run at once
    ++ran[size_t(thread)];
  });
  EXPECT_EQ(started, 4);
  for (const std::atomic<int>& times : ran) EXPECT_EQ(times, 1);
  EXPECT_THROW(run_together(3, [](int, int) { throw std::runtime_error("one"); }), std::runtime_error);
}

TEST(Parallel, CountsCores) {
  EXPECT_GE(allowed_cores(), 1);
  EXPECT_LE(size_t(allowed_cores()), std::max<size_t>(1, allowed_core_ids().size()));
}

#ifndef HEDDLE_SANITIZED  // sanitizers want more memory than this limit leaves

// Leaves no room for another thread's stack.
void forbid_threads() {
  long pages = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (!file || std::fscanf(file, "%ld", &pages) != 1) std::exit(2);
  std::fclose(file);
  const rlim_t bytes = rlim_t(pages) * rlim_t(::sysconf(_SC_PAGESIZE)) + (rlim_t{1} << 20);
  const rlimit limit{bytes, bytes};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) std::exit(2);
}

void work_without_threads() {
  forbid_threads();
  std::atomic<int> ran = 0;
  parallel_for(10, 4, [&](size_t) { ++ran; });
  const int started = run_together(4, [&](int, int all) { ran += all; });
  std::exit(ran == 11 && started == 1 ? 0 : 1);
}

TEST(ParallelDeathTest, GoesOnWithTheThreadsThatStart) {
  GTEST_FLAG_SET(death_test_style,
                 "threadsafe");  // runs in a new process, without stacks of earlier threads
  EXPECT_EXIT(work_without_threads(), testing::ExitedWithCode(0),
              "1 of 4 threads started, no more could .*--threads N.*ulimit -u");
}

#endif

}  // namespace
}  // namespace heddle
