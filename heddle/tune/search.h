// The search for a configuration, as a machine that says what to do next: compile this one, time that one,
// wait, done. It knows neither compilers nor clocks; choose.h has the loop that drives it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "heddle/ir/config.h"
#include "heddle/tune/timing.h"

namespace heddle::tune {

enum class Policy : u8 {
  kPickAny,   // the first configuration, in the op's order, that compiles and runs
  kPickBest,  // the fastest of all that compile and run
};

const char* name(Policy policy);

struct Settings {
  Policy policy = Policy::kPickAny;
  int max_configs = 0;  // PickBest tries at most this many, the first in the op's order; 0: all
  // a configuration that fails is left out; false: it ends the search with an error
  bool allow_failure = true;
  int num_workers = 1;         // compilations that may run at once
  bool allow_reorder = false;  // configurations that change the order of a sum may be chosen too
  TimingRules timing = {};
};

struct Step {
  enum class Kind : u8 {
    kCompile,  // `sample.candidate`; the caller may ask for more before it has ended
    kTime,     // `sample`
    kWait,     // for a compilation that is running
    kDone,
  };
  Kind kind = Kind::kDone;
  Sample sample = {};
};

// The failures, by configuration.
using Failures = std::map<OpConfig, std::string>;

// A candidate and what was found of it, for people.
struct Tried {
  std::string config;
  std::string state;  // "best", "slower", "tied", "dropped", "failed", "compiled", "not tried", "chosen"
  std::string why;    // it failed
  size_t rounds = 0;  // in which it was timed; 0: it was not
  // Its time as a part of the best one's, by Timing::ratios(): the median, and the middle half of the rounds.
  double ratio = 0, low = 0, high = 0;
  double ns = 0;  // the best one's median time, times the ratio
};

// A table of 80 columns, the fastest first.
std::string text_of(const std::vector<Tried>& all);

class Search {
 public:
  // Candidates are in the op's order, the likely best first. Candidates with a known failure are not tried
  // again. Throws Error(kInvalidArgument) when a candidate comes twice, or when none may be tried.
  Search(std::vector<OpConfig> candidates, const Settings& settings, const Failures& known_failures = {});

  Step next();
  // Reports that a candidate was compiled, or failed and why.
  void compiled(size_t candidate);
  void failed_to_compile(size_t candidate, const std::string& why);
  // Reports the result of the sample of the last kTime.
  void timed(double ns_per_call);
  void failed_to_run(const std::string& why);

  const OpConfig& candidate(size_t index) const { return candidates_[index]; }
  size_t size() const { return candidates_.size(); }  // candidates that may be tried
  bool contains(const OpConfig& config) const;
  // Valid once next() is kDone. Throws Error(kCompile) with the reasons when none works, or when one failed
  // that must not.
  const OpConfig& winner() const;
  bool has_winner() const { return winner_ && !broken_; }
  double winner_ns() const;  // median per call; 0 if the policy needs no times
  const Failures& failures() const { return failures_; }
  const Timing& timing() const;  // PickBest only, once it has begun
  int samples() const { return samples_; }
  int samples_expected() const { return timing_ ? timing_->samples_expected() : samples_; }
  // All candidates, in their order.
  std::vector<Tried> tried() const;
  std::string text() const { return text_of(tried()); }

 private:
  enum class State : u8 { kNew, kCompiling, kReady, kWorks, kFailed };

  void fail(size_t candidate, const std::string& why);
  bool is_over() const { return winner_.has_value() || broken_; }
  std::optional<size_t> first_in(State state) const;
  size_t count(State state) const;
  Step trial();
  Step time_all();

  std::vector<OpConfig> candidates_;
  Settings settings_;
  Failures failures_;
  std::vector<State> states_;
  std::optional<Timing> timing_;
  std::vector<size_t> timed_;  // candidate of each entry of timing_
  std::optional<size_t> trial_, winner_;
  bool broken_ = false;  // a failure that is not allowed
  int samples_ = 0;
};

}  // namespace heddle::tune
