// The search for a configuration, as a machine that says what to do next: compile this one, time that one, wait, done. It
// knows neither compilers nor clocks; choose.h has the loop around it.
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
  kPickBest,  // the fastest of all that do
};

const char* name(Policy policy);

struct Settings {
  Policy policy = Policy::kPickAny;
  int max_configs = 0;        // PickBest tries so many, the first in the op's order; 0: all
  bool allow_failure = true;  // a configuration that fails is left out; else it ends the search with an error
  int num_workers = 1;        // compilations that may go on at once
  bool allow_reorder = false;  // those that change the order of a sum may be chosen too
  TimingRules timing = {};
};

struct Step {
  enum class Kind : u8 {
    kCompile,  // `sample.candidate`; more may be asked for before it has ended
    kTime,     // `sample`
    kWait,     // for a compilation that goes on
    kDone,
  };
  Kind kind = Kind::kDone;
  Sample sample = {};
};

// Why configurations failed, by configuration.
using Failures = std::map<Config, std::string>;

class Search {
 public:
  // Candidates in the op's order: the likely best first. Those known to fail are not tried again.
  // Throws Error(kInvalidArgument) where a candidate comes twice or there is none that may be tried.
  Search(std::vector<Config> candidates, const Settings& settings, const Failures& known_failures = {});

  Step next();
  // A candidate has been compiled, or not, and why.
  void compiled(size_t candidate);
  void failed_to_compile(size_t candidate, const std::string& why);
  // What came of the sample of the last kTime.
  void timed(double ns_per_call);
  void failed_to_run(const std::string& why);

  const Config& candidate(size_t index) const { return candidates_[index]; }
  size_t size() const { return candidates_.size(); }  // that may be tried
  bool contains(const Config& config) const;
  // Once next() is kDone. Throws Error(kCompile) with the reasons where none works, or where one failed that must not.
  const Config& winner() const;
  bool has_winner() const { return winner_ && !broken_; }
  double winner_ns() const;  // median of a call; 0 where the policy asks for none
  const Failures& failures() const { return failures_; }
  const Timing& timing() const;  // of PickBest, once it has begun
  int samples() const { return samples_; }
  // A line for each candidate: how it stands and its median.
  std::string text() const;

 private:
  enum class State : u8 { kNew, kCompiling, kReady, kWorks, kFailed };

  void fail(size_t candidate, const std::string& why);
  bool is_over() const { return winner_.has_value() || broken_; }
  std::optional<size_t> first_in(State state) const;
  size_t count(State state) const;
  Step trial();
  Step time_all();

  std::vector<Config> candidates_;
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
