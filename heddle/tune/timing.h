// An honest comparison of times, as data and decisions. It says what to time next and when enough is known.
// The caller has the clock, the buffers and the work.
//
// All candidates are timed in every round, in an order that differs from round to round, so that a falling
// clock or a busy neighbour affects all of them alike. Only how much slower a candidate was than another in
// the same round counts; a candidate that is clearly slower is dropped. Sets of operands rotate, so that no
// call finds its operands in a cache that the previous call has filled.
#pragma once

#include <optional>
#include <vector>

#include "heddle/base/types.h"

namespace heddle::tune {

struct TimingRules {
  int least_rounds = 5, most_rounds = 40;
  // a candidate is dropped if it was slower by `drop_above` in this many rounds, all of them
  int drop_after = 3;
  double drop_above = 0.10;    // fraction of the best median
  double tie_within = 0.01;    // candidates that differ by less are equal, and the first of them wins
  double sample_ns = 200'000;  // a sample has enough calls to last this long, because clocks are coarse
  int most_calls = 1000;
  int buffers = 1;  // sets of operands that rotate; buffers_for() says how many
  u64 seed = 1;     // for the order within rounds
};

// The number of sets of operands, at most `most`, after which a set has left the cache when its turn comes
// again.
int buffers_for(i64 bytes_of_a_set, i64 bytes_of_cache, int most = 64);

// One sample to take: `calls` calls in a row, with sets of operands from `buffer` on, in rotation.
struct Sample {
  size_t candidate = 0;
  int calls = 1;
  int buffer = 0;
};

enum class Standing : u8 {
  kOpen,     // not decided
  kDropped,  // clearly slower after few rounds
  kSlower,   // slower than the best, by more than its times spread
  kTied,     // no slower than the best by more than a tie
  kFailed,   // it could not be timed
  kBest,
};

const char* name(Standing standing);

class Timing {
 public:
  Timing(size_t candidates, const TimingRules& rules);

  // The sample to time next; none: decided. Returns the same sample until add() or fail() answers it.
  std::optional<Sample> next();
  // Nanoseconds per call in the sample that next() named. Throws Error(kInvalidArgument) when they are not
  // above 0.
  void add(double ns_per_call);
  // Reports that the sample that next() named could not be taken.
  void fail();

  // The winner, once next() says that it is decided; none when all have failed.
  std::optional<size_t> best() const { return best_; }
  Standing standing(size_t candidate) const { return entries_[candidate].standing; }
  // Median over the rounds, without the first sample, which warms up and determines the calls of a sample. 0
  // when there are none.
  double median_ns(size_t candidate) const;
  const std::vector<double>& rounds(size_t candidate) const { return entries_[candidate].ns; }
  // By round: the candidate's time, relative to the round, as a part of the best one's median. The best one's median is 1, and no
  // slower candidate has a smaller one. Empty before all is decided.
  std::vector<double> ratios(size_t candidate) const;
  // The expected number of samples: more where times spread.
  int samples_expected() const;
  int samples() const { return samples_; }  // taken, including warm-up

 private:
  struct Entry {
    Standing standing = Standing::kOpen;
    int calls = 0;           // calls per sample; 0: not warmed up
    std::vector<double> ns;  // by round
  };

  bool is_open(size_t candidate) const { return entries_[candidate].standing == Standing::kOpen; }
  void begin_round();
  void end_round();
  void drop_losers(size_t leader);
  void decide(size_t leader, bool last);
  // By round: the candidate's time as a part of the sum of all that were timed in every round. The speed of the machine in a
  // round cancels out.
  std::vector<double> parts(size_t candidate) const;
  size_t fastest() const;  // the open candidate with the smallest median of parts

  TimingRules rules_;
  std::vector<Entry> entries_;
  std::vector<size_t> order_;  // order of the current round; the first round warms up
  size_t at_ = 0;              // in order_
  int round_ = 0;              // rounds that have ended, without the warm-up
  int samples_ = 0, buffer_ = 0;
  bool decided_ = false;
  std::optional<size_t> best_;
};

}  // namespace heddle::tune
