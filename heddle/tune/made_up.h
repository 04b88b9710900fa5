// For tests: candidates with planted times, and a clock with the faults of real ones.
#pragma once

#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "heddle/ir/config.h"

namespace heddle::tune {

// Its times spread by a few percent, are sometimes much longer, and come from a machine whose speed changes
// slowly. Other work and falling clocks hit whichever candidate is timed at that moment.
class MadeUpClock {
 public:
  explicit MadeUpClock(u64 seed, double spread = 0.02) : random_(seed), spread_(spread) {}

  double sample(double true_ns) {
    ++samples_;
    const double slow =
        1 + 0.15 * std::sin(0.05 * double(samples_));  // speed of the machine, over about 120 samples
    double ns = true_ns * slow * std::exp(spread_ * std::abs(normal_(random_)));
    if (random_() % 20 == 0) ns *= 1 + 0.5 * double(random_() % 100) / 100;
    return ns;
  }
  int samples() const { return samples_; }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  double spread_;
  int samples_ = 0;
};

inline OpConfig numbered(i64 tile) {
  return {{"tile", tile}};
}

}  // namespace heddle::tune
