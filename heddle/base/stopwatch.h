// How long something takes.
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>

namespace heddle {

class Stopwatch {
 public:
  // Since it was made.
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

// The lowest of the times that `action` took, in milliseconds of this process. Other work does not count in, but it
// slows caches and clock, so `action` runs up to `tries` times until one is at most `enough`.
template <class Action>
double lowest_ms(int tries, double enough, Action action) {
  double lowest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < tries && lowest > enough; ++i) {
    const std::clock_t begin = std::clock();
    action();
    lowest = std::min(lowest, 1e3 * double(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return lowest;
}

}  // namespace heddle
