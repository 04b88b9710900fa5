// Measures elapsed time.
#pragma once

#include <chrono>

namespace heddle {

class Stopwatch {
 public:
  // Seconds since it was made.
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace heddle
