// Candidates with planted times, and a clock with the faults of real ones: for tests.
#pragma once

#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "heddle/ir/config.h"

namespace heddle::tune {

// Times that spread by a few percent and are now and then much longer, on a machine whose speed changes slowly: other
// work and clocks that fall hit whoever is timed at that moment.
class MadeUpClock {
 public:
  explicit MadeUpClock(u64 seed, double spread = 0.02) : random_(seed), spread_(spread) {}

  double sample(double true_ns) {
    ++samples_;
    const double slow =
        1 + 0.15 * std::sin(0.05 * double(samples_));  // of the machine, over about 120 samples
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

inline Config numbered(i64 tile) {
  return {{"tile", tile}};
}

}  // namespace heddle::tune
