#include "heddle/tune/search.h"

#include <algorithm>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/invariant.h"

namespace heddle::tune {

namespace {

const std::string kBestName = name(Standing::kBest);

}  // namespace

const char* name(Policy policy) {
  return policy == Policy::kPickAny ? "PickAny" : "PickBest";
}

Search::Search(std::vector<OpConfig> candidates, const Settings& settings, const Failures& known_failures)
    : candidates_(std::move(candidates)), settings_(settings) {
  require(settings.max_configs >= 0 && settings.num_workers >= 1,
          "[tune] max_configs is {} and num_workers {}; must be 0 or more, and 1 or more",
          settings.max_configs, settings.num_workers);
  const size_t given = candidates_.size();
  if (!settings.allow_reorder) std::erase_if(candidates_, [](const OpConfig& c) { return c.reorders(); });
  require(!candidates_.empty(),
          "[tune] of {} configurations none keeps the order of sums; allow_reorder is off", given);
  for (size_t c = 1; c < candidates_.size(); ++c)
    require(std::find(candidates_.begin(), candidates_.begin() + i64(c), candidates_[c]) ==
                candidates_.begin() + i64(c),
            "[tune] {} is listed twice", candidates_[c].text());
  if (settings.policy == Policy::kPickBest && settings.max_configs > 0 &&
      candidates_.size() > size_t(settings.max_configs))
    candidates_.resize(size_t(settings.max_configs));
  states_.assign(candidates_.size(), State::kNew);
  for (size_t c = 0; c < candidates_.size(); ++c)
    if (const auto known = known_failures.find(candidates_[c]); known != known_failures.end())
      fail(c, known->second);
}

void Search::fail(size_t candidate, const std::string& why) {
  states_[candidate] = State::kFailed;
  failures_[candidates_[candidate]] = why;
  broken_ |= !settings_.allow_failure;
}

std::optional<size_t> Search::first_in(State state) const {
  const auto at = std::find(states_.begin(), states_.end(), state);
  if (at == states_.end()) return std::nullopt;
  return size_t(at - states_.begin());
}

size_t Search::count(State state) const {
  return size_t(std::count(states_.begin(), states_.end(), state));
}

Step Search::next() {
  if (is_over()) return {};
  if (trial_) return {Step::Kind::kTime, {*trial_}};
  if (timing_) return time_all();
  if (settings_.policy == Policy::kPickAny)
    if (const Step step = trial(); step.kind != Step::Kind::kDone || is_over()) return step;
  const auto fresh = first_in(State::kNew);
  // PickAny needs no further compilation while a candidate is ready that may win.
  const size_t ahead =
      count(State::kCompiling) + (settings_.policy == Policy::kPickAny ? count(State::kReady) : 0);
  if (fresh && ahead < size_t(settings_.num_workers)) {
    states_[*fresh] = State::kCompiling;
    return {Step::Kind::kCompile, {*fresh}};
  }
  if (count(State::kCompiling) > 0) return {Step::Kind::kWait, {}};
  if (settings_.policy == Policy::kPickAny || count(State::kReady) == 0) return {};  // none works
  for (size_t c = 0; c < states_.size(); ++c)
    if (states_[c] == State::kReady) timed_.push_back(c);
  timing_.emplace(timed_.size(), settings_.timing);
  return time_all();
}

// PickAny: runs a candidate once, if all candidates before it have failed. kDone: there is none yet.
Step Search::trial() {
  const auto at = std::find_if(states_.begin(), states_.end(), [](State s) { return s != State::kFailed; });
  if (at == states_.end() || (*at != State::kReady && *at != State::kWorks)) return {};
  const size_t candidate = size_t(at - states_.begin());
  if (*at == State::kWorks) {
    winner_ = candidate;
    return {};
  }
  trial_ = candidate;
  return {Step::Kind::kTime, {candidate}};
}

Step Search::time_all() {
  if (std::optional<Sample> sample = timing_->next()) {
    sample->candidate = timed_[sample->candidate];
    return {Step::Kind::kTime, *sample};
  }
  if (const auto best = timing_->best()) winner_ = timed_[*best];
  return {};
}

void Search::compiled(size_t candidate) {
  HEDDLE_CHECK(candidate < size() && states_[candidate] == State::kCompiling);
  states_[candidate] = State::kReady;
}

void Search::failed_to_compile(size_t candidate, const std::string& why) {
  HEDDLE_CHECK(candidate < size() && states_[candidate] == State::kCompiling);
  fail(candidate, why);
}

void Search::timed(double ns_per_call) {
  HEDDLE_CHECK(trial_ || timing_);
  ++samples_;
  if (trial_)
    states_[*trial_] = State::kWorks, trial_.reset();
  else
    timing_->add(ns_per_call);
}

void Search::failed_to_run(const std::string& why) {
  HEDDLE_CHECK(trial_ || timing_);
  const size_t candidate = trial_ ? *trial_ : timed_[timing_->next().value().candidate];
  if (!trial_) timing_->fail();
  trial_.reset();
  fail(candidate, why);
}

const OpConfig& Search::winner() const {
  if (has_winner()) return candidates_[*winner_];
  std::string reasons;
  for (const auto& [config, why] : failures_) reasons += fmt::format("\n  {}: {}", config.text(), why);
  heddle::fail(ErrorCode::kCompile, "[tune] {} of {} configurations fail{}:{}", failures_.size(), size(),
               settings_.allow_failure ? "" : ", which allow_failure forbids", reasons);
}

double Search::winner_ns() const {
  if (!winner_ || !timing_) return 0;
  return timing_->median_ns(*timing_->best());
}

bool Search::contains(const OpConfig& config) const {
  return std::find(candidates_.begin(), candidates_.end(), config) != candidates_.end();
}

const Timing& Search::timing() const {
  HEDDLE_CHECK(timing_.has_value());
  return *timing_;
}

std::vector<Tried> Search::tried() const {
  std::vector<Tried> all;
  for (size_t c = 0; c < size(); ++c) {
    Tried& one = all.emplace_back(Tried{.config = candidates_[c].text()});
    const auto at = std::find(timed_.begin(), timed_.end(), c);
    one.state = winner_ == c ? "chosen" : states_[c] == State::kNew ? "not tried" : "compiled";
    if (states_[c] == State::kFailed) {
      one.state = "failed", one.why = failures_.at(candidates_[c]);
    } else if (at != timed_.end()) {
      const size_t entry = size_t(at - timed_.begin());
      one.state = name(timing_->standing(entry));
      std::vector<double> ratios = timing_->ratios(entry);
      one.rounds = ratios.size();
      if (ratios.empty()) continue;
      std::sort(ratios.begin(), ratios.end());
      const size_t n = ratios.size();
      one.ratio = (ratios[(n - 1) / 2] + ratios[n / 2]) / 2;
      one.low = ratios[(n - 1) / 4], one.high = ratios[n - 1 - (n - 1) / 4];
      one.ns = one.ratio * timing_->median_ns(*timing_->best());
    }
  }
  return all;
}

std::string text_of(const std::vector<Tried>& all) {
  constexpr size_t kWidest = 35;  // so that a row fits 80 columns
  std::vector<const Tried*> rows;
  size_t width = 13;
  for (const Tried& one : all) {
    rows.push_back(&one);
    width = std::max(width, std::min(one.config.size(), kWidest));
  }
  // The fastest first, those without a time last.
  std::ranges::stable_sort(rows, {}, [](const Tried* one) {
    return std::pair(one->rounds == 0, one->state == kBestName ? 0 : one->ratio);
  });
  std::string text =
      fmt::format("{:<{}}  {:>9}  {:>5}  {:^12}\n", "configuration", width, "ms", "ratio", "spread");
  for (const Tried* one : rows) {
    text += fmt::format("{:<{}}", one->config, width);
    if (one->config.size() > width) text += fmt::format("\n{:<{}}", "", width);
    if (one->rounds > 0)
      text += fmt::format("  {:9.{}f}  {:5.2f}  {:.2f} to {:.2f}", 1e-6 * one->ns, one->ns < 1e7 ? 4 : 1,
                          one->ratio, one->low, one->high);
    text += fmt::format("  {}{}\n", one->state, one->why.empty() ? "" : ": " + one->why);
  }
  return text;
}

}  // namespace heddle::tune
