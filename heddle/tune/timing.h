// An honest comparison of times, as data and decisions: it says what to time next and when enough is known. The caller has the
// clock, the buffers and the work.
//
// All candidates are timed in every round, in an order that differs from round to round, so that a clock that slows down
// or a busy neighbour meets all of them alike. What counts is how much slower a candidate was than another one in the same
// round; a candidate that is clearly slower is timed no more. Buffers are used in turns, so that no call finds its operands in
// a cache that the call before it has filled.
#pragma once

#include <optional>
#include <vector>

#include "heddle/base/types.h"

namespace heddle::tune {

struct TimingRules {
  int least_rounds = 5, most_rounds = 40;
  int drop_after = 3;          // rounds in all of which a candidate was slower by `drop_above`: it is dropped
  double drop_above = 0.10;    // of the best median
  double tie_within = 0.01;    // candidates that differ by less are equal, and the first of them wins
  double sample_ns = 200'000;  // a sample has as many calls as last so long, against the resolution of clocks
  int most_calls = 1000;
  int buffers = 1;  // sets of operands that are used in turns; buffers_for() says how many
  u64 seed = 1;     // of the order within rounds
};

// So many sets of operands that a set has left the cache when its turn comes again; at most `most`.
int buffers_for(i64 bytes_of_a_set, i64 bytes_of_cache, int most = 64);

// One sample to take: `calls` calls, one after another, with sets of operands from `buffer` on, in turns.
struct Sample {
  size_t candidate = 0;
  int calls = 1;
  int buffer = 0;
};

enum class Standing : u8 {
  kOpen,     // not decided
  kDropped,  // clearly slower after few rounds
  kSlower,   // slower than the best, beyond what its times spread
  kTied,     // no slower than the best by more than a tie
  kFailed,   // it could not be timed
  kBest,
};

const char* name(Standing standing);

class Timing {
 public:
  Timing(size_t candidates, const TimingRules& rules);

  // What to time next; none: decided. The same until add() or fail() answers it.
  std::optional<Sample> next();
  // Nanoseconds of one call in the sample that next() named. Throws Error(kInvalidArgument) where they are not above 0.
  void add(double ns_per_call);
  // The sample that next() named could not be taken.
  void fail();

  // The winner, once next() has said that it is decided; none where all have failed.
  std::optional<size_t> best() const { return best_; }
  Standing standing(size_t candidate) const { return entries_[candidate].standing; }
  // Of the rounds, without the first sample, which warms up and says how many calls a sample has; 0 where there are none.
  double median_ns(size_t candidate) const;
  const std::vector<double>& rounds(size_t candidate) const { return entries_[candidate].ns; }
  int samples() const { return samples_; }  // taken, those that warm up among them

 private:
  struct Entry {
    Standing standing = Standing::kOpen;
    int calls = 0;           // of a sample; 0: it has not been warmed up
    std::vector<double> ns;  // by round
  };

  bool is_open(size_t candidate) const { return entries_[candidate].standing == Standing::kOpen; }
  void begin_round();
  void end_round();
  void drop_losers(size_t leader);
  void decide(size_t leader, bool last);
  size_t fastest() const;

  TimingRules rules_;
  std::vector<Entry> entries_;
  std::vector<size_t> order_;  // of the round; the first round warms up
  size_t at_ = 0;              // in order_
  int round_ = 0;              // ended, without the one that warms up
  int samples_ = 0, buffer_ = 0;
  bool decided_ = false;
  std::optional<size_t> best_;
};

}  // namespace heddle::tune
