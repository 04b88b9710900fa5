#include "heddle/tune/timing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "heddle/base/error.h"

namespace heddle::tune {
namespace {

double median_of(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + i64(middle), values.end());
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle] + *std::max_element(values.begin(), values.begin() + i64(middle))) / 2;
}

// Bounds of the median of the distribution that `values` come from. Each bound is wrong in at most `kWrong`
// of all cases, whatever the distribution: the median lies below the k-th smallest value if fewer than k of n
// fair coins show heads.
struct Bounds {
  double low, high;
};
constexpr double kWrong = 0.005;

Bounds bounds_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const int n = int(values.size());
  double below = 0, exactly = std::pow(0.5, n);  // probabilities of fewer than k heads, and of exactly k
  int k = 0;
  while (k < n / 2 && below + exactly <= kWrong) {
    below += exactly;
    exactly *= double(n - k) / (k + 1);
    ++k;
  }
  if (k == 0) return {0, std::numeric_limits<double>::infinity()};
  return {values[size_t(k - 1)], values[size_t(n - k)]};
}

}  // namespace

int buffers_for(i64 bytes_of_a_set, i64 bytes_of_cache, int most) {
  require(
      bytes_of_a_set > 0 && bytes_of_cache >= 0 && most > 0,
      "[tune] {} bytes of operands, {} of cache and at most {} buffers; must be above 0, 0 or more, above 0",
      bytes_of_a_set, bytes_of_cache, most);
  return int(std::min<i64>(most, 1 + (2 * bytes_of_cache + bytes_of_a_set - 1) / bytes_of_a_set));
}

const char* name(Standing standing) {
  constexpr const char* kNames[] = {"open", "dropped", "slower", "tied", "failed", "best"};
  return kNames[size_t(standing)];
}

Timing::Timing(size_t candidates, const TimingRules& rules) : rules_(rules), entries_(candidates) {
  require(
      rules.least_rounds > 0 && rules.most_rounds >= rules.least_rounds && rules.drop_after > 0 &&
          rules.buffers > 0 && rules.most_calls > 0,
      "[tune] {} to {} rounds, dropped after {}, {} buffers, at most {} calls; must be 1 or more each, and "
      "the most rounds no fewer than the least",
      rules.least_rounds, rules.most_rounds, rules.drop_after, rules.buffers, rules.most_calls);
  order_.resize(candidates);
  std::iota(order_.begin(), order_.end(), size_t{0});
}

std::optional<Sample> Timing::next() {
  while (!decided_) {
    while (at_ < order_.size() && !is_open(order_[at_])) ++at_;
    if (at_ < order_.size()) {
      const size_t candidate = order_[at_];
      return Sample{candidate, std::max(1, entries_[candidate].calls), buffer_};
    }
    end_round();
    if (!decided_) begin_round();
  }
  return std::nullopt;
}

void Timing::add(double ns_per_call) {
  const std::optional<Sample> sample = next();
  require(sample.has_value(), "[tune] a time without a sample: all is decided");
  require(ns_per_call > 0 && std::isfinite(ns_per_call), "[tune] a call took {} ns; must be above 0",
          ns_per_call);
  Entry& entry = entries_[sample->candidate];
  if (entry.calls > 0) entry.ns.push_back(ns_per_call);
  const double calls = std::clamp(std::ceil(rules_.sample_ns / ns_per_call), 1.0, double(rules_.most_calls));
  entry.calls = std::max(entry.calls, int(calls));
  buffer_ = (buffer_ + sample->calls) % rules_.buffers;
  ++samples_, ++at_;
}

void Timing::fail() {
  const std::optional<Sample> sample = next();
  require(sample.has_value(), "[tune] a failure without a sample: all is decided");
  entries_[sample->candidate].standing = Standing::kFailed;
}

double Timing::median_ns(size_t candidate) const {
  const std::vector<double>& ns = entries_[candidate].ns;
  return ns.empty() ? 0 : median_of(ns);
}

std::vector<double> Timing::parts(size_t candidate) const {
  std::vector<double> of_round(size_t(round_), 0);
  for (const Entry& entry : entries_)
    for (size_t i = 0; entry.ns.size() == of_round.size() && i < of_round.size(); ++i)
      of_round[i] += entry.ns[i];
  std::vector<double> parts = entries_[candidate].ns;
  for (size_t i = 0; i < parts.size(); ++i) parts[i] /= of_round[i];
  return parts;
}

std::vector<double> Timing::ratios(size_t candidate) const {
  if (!best_) return {};
  const double best = median_of(parts(*best_));
  std::vector<double> ratios = parts(candidate);
  for (double& ratio : ratios) ratio /= best;
  return ratios;
}

int Timing::samples_expected() const {
  if (decided_) return samples_;
  int open = 0;
  for (size_t c = 0; c < entries_.size(); ++c) open += is_open(c);
  const int warm = samples_ < int(order_.size()) ? 1 : 0;
  const int rounds = std::max(rules_.least_rounds - round_, 1) + warm;
  return std::max(samples_ + 1, samples_ - int(at_) + rounds * open);
}

void Timing::begin_round() {
  std::mt19937_64 random(rules_.seed * 1'000'003 + u64(round_));
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random() % i]);
  at_ = 0;
}

size_t Timing::fastest() const {
  size_t best = entries_.size();
  double least = std::numeric_limits<double>::infinity();
  for (size_t c = 0; c < entries_.size(); ++c) {
    if (!is_open(c)) continue;
    const double part = round_ > 0 ? median_of(parts(c)) : 1;
    if (part < least) best = c, least = part;
  }
  return best;
}

void Timing::end_round() {
  const auto open = std::find_if(entries_.begin(), entries_.end(),
                                 [](const Entry& entry) { return entry.standing == Standing::kOpen; });
  decided_ = open == entries_.end();
  if (decided_ || open->ns.empty()) return;  // none is left, or all are warm
  ++round_;
  const size_t leader = fastest();
  if (round_ >= rules_.drop_after) drop_losers(leader);
  if (round_ >= rules_.least_rounds) decide(leader, round_ >= rules_.most_rounds);
}

// Other work makes a call slower, never faster. So a candidate that was this slow in every round is slow.
void Timing::drop_losers(size_t leader) {
  const double limit = (1 + rules_.drop_above) * median_ns(leader);
  for (Entry& entry : entries_)
    if (entry.standing == Standing::kOpen && *std::min_element(entry.ns.begin(), entry.ns.end()) > limit)
      entry.standing = Standing::kDropped;
}

// Decides once every other candidate is known to be slower or equal; in the last round, by what is likely. Pairs of one
// round tell how sure it is, but which is slower follows from the medians of parts, which have one order. Pairs have none: a may be
// faster than b in most rounds, b than c, and c than a.
void Timing::decide(size_t leader, bool last) {
  const double limit = 1 + rules_.tie_within, least = median_of(parts(leader));
  std::vector<size_t> tied;
  bool known = true;
  for (size_t c = 0; c < entries_.size(); ++c) {
    if (!is_open(c)) continue;
    std::vector<double> ratios = entries_[c].ns;
    for (size_t i = 0; i < ratios.size(); ++i) ratios[i] /= entries_[leader].ns[i];
    const Bounds bounds = bounds_of(ratios);
    if ((bounds.low > limit || last) && median_of(parts(c)) > limit * least)
      entries_[c].standing = Standing::kSlower;
    else
      tied.push_back(c), known &= c == leader || bounds.high <= limit || last;
  }
  if (!known) return;
  for (size_t c : tied) entries_[c].standing = Standing::kTied;
  best_ = tied.front();
  entries_[*best_].standing = Standing::kBest;
  decided_ = true;
}

}  // namespace heddle::tune
