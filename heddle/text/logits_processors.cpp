#include "heddle/text/logits_processors.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heddle/tile/philox.h"

namespace heddle {
namespace {

constexpr float kNever = -INFINITY;

// True if the next token would complete `sequence`.
bool is_next(std::span<const int32_t> tokens, std::span<const int32_t> sequence) {
  const size_t before = sequence.size() - 1;
  return before <= tokens.size() && std::ranges::equal(tokens.last(before), sequence.first(before));
}

class Processor {
 public:
  Processor(std::span<const int32_t> tokens, std::span<const float> logits)
      : tokens_(tokens), scores_(logits.begin(), logits.end()) {}

  void bias(std::span<const int32_t> sequence, float bias) {
    if (is_next(tokens_, sequence) && exists(sequence.back())) scores_[size_t(sequence.back())] += bias;
  }

  void penalise_repetition(float penalty) {
    std::vector<bool> seen(scores_.size());
    for (int32_t token : tokens_) {
      if (!exists(token) || seen[size_t(token)]) continue;
      seen[size_t(token)] = true;
      float& score = scores_[size_t(token)];
      score = score < 0 ? score * penalty : score / penalty;
    }
  }

  void forbid_ngrams(size_t size) {
    if (tokens_.size() + 1 < size) return;
    for (size_t i = 0; i + size <= tokens_.size(); ++i)
      if (is_next(tokens_, tokens_.subspan(i, size))) bias(tokens_.subspan(i, size), kNever);
  }

  void divide(float temperature) {
    for (float& score : scores_) score /= temperature;
  }

  void keep_top_k(size_t k) {
    if (k >= scores_.size()) return;
    std::vector<float> sorted = scores_;
    std::ranges::nth_element(sorted, sorted.begin() + long(k) - 1, std::greater<>());
    drop([&, least = sorted[k - 1]](size_t i) { return scores_[i] < least; });
  }

  // Drops tokens once those above them have the probability.
  void keep_top_p(double p) {
    const std::vector<size_t> order = sorted([&](size_t i) { return -scores_[i]; });
    const double limit = p * total();
    double above = 0;
    size_t kept = 0;
    while (kept < order.size() && (kept == 0 || above < limit)) above += weight(order[kept++]);
    drop_rest(order, kept);
  }

  void keep_min_p(double p) {
    total();
    drop([&](size_t i) { return weight(i) < p; });
  }

  // Locally typical sampling (Meister et al., 2022): ranks tokens by how far their surprise is from the mean.
  void keep_typical(double mass) {
    const double norm = total(), log_norm = std::log(norm);
    double entropy = 0;
    std::vector<double> distance(scores_.size());
    for (size_t i = 0; i < scores_.size(); ++i)
      if (const double w = weight(i); w > 0) entropy -= w / norm * (double(scores_[i] - top_) - log_norm);
    for (size_t i = 0; i < scores_.size(); ++i)
      distance[i] = std::abs(log_norm - double(scores_[i] - top_) - entropy);
    const std::vector<size_t> order = sorted([&](size_t i) { return distance[i]; });
    double sum = 0;
    size_t last = 0;
    for (; last + 1 < order.size(); ++last) {
      sum += weight(order[last]);
      if (sum >= mass * norm) break;
    }
    drop([&, most = distance[order[last]], first = order[0]](size_t i) {
      return distance[i] > most && i != first;
    });
  }

  std::vector<float> take() { return std::move(scores_); }

 private:
  bool exists(int32_t token) const { return size_t(token) < scores_.size(); }

  double weight(size_t i) const { return std::exp(double(scores_[i] - top_)); }
  // The sum of the weights; the largest weight is 1.
  double total() {
    top_ = *std::ranges::max_element(scores_);
    double sum = 0;
    for (size_t i = 0; i < scores_.size(); ++i) sum += weight(i);
    return sum;
  }

  std::vector<size_t> sorted(auto&& key) const {
    std::vector<size_t> order(scores_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::less<>(), key);
    return order;
  }
  void drop(auto&& dropped) {
    std::vector<float> kept = scores_;
    for (size_t i = 0; i < scores_.size(); ++i)
      if (dropped(i)) kept[i] = kNever;
    scores_ = std::move(kept);
  }
  // As in `sample`: scores equal to the last kept one stay.
  void drop_rest(const std::vector<size_t>& order, size_t kept) {
    drop([&, least = scores_[order[kept - 1]]](size_t i) { return scores_[i] < least; });
  }

  std::span<const int32_t> tokens_;
  std::vector<float> scores_;
  float top_ = 0;
};

}  // namespace

std::vector<float> process_logits(const SamplingParams& params, std::span<const int32_t> tokens,
                                  std::span<const float> logits) {
  Processor scores(tokens, logits);
  for (const SequenceBias& bias : params.sequence_bias) scores.bias(bias.tokens, bias.bias);
  if (params.repetition_penalty != 1) scores.penalise_repetition(params.repetition_penalty);
  if (params.no_repeat_ngram_size > 0) scores.forbid_ngrams(size_t(params.no_repeat_ngram_size));
  for (const auto& word : params.bad_words_ids) scores.bias(word, kNever);
  if (!params.greedy()) {
    if (params.temperature != 1) scores.divide(params.temperature);
    if (params.top_k > 0) scores.keep_top_k(size_t(params.top_k));
    if (params.top_p < 1) scores.keep_top_p(double(params.top_p));
    if (params.min_p > 0) scores.keep_min_p(double(params.min_p));
    if (params.typical_p < 1) scores.keep_typical(double(params.typical_p));
  }
  return scores.take();
}

int32_t choose_token(const SamplingParams& params, std::span<const int32_t> tokens,
                     std::span<const float> logits, uint32_t draw) {
  const std::vector<float> scores = process_logits(params, tokens, logits);
  const auto best = std::ranges::max_element(scores);
  require(*best > kNever,
          "[sampling] no token is left to choose; fewer bad words or a longer n-gram leave some");
  if (params.greedy()) return int32_t(best - scores.begin());
  double left = double(uniform_draw(params.seed, draw)) * std::exp(log_sum_exp(scores) - double(*best));
  size_t last = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] == kNever) continue;
    last = i;
    left -= std::exp(double(scores[i]) - double(*best));
    if (left < 0) break;
  }
  return int32_t(last);
}

double log_sum_exp(std::span<const float> logits) {
  const double top = double(*std::ranges::max_element(logits));
  double sum = 0;
  for (float logit : logits) sum += std::exp(double(logit) - top);
  return top + std::log(sum);
}

}  // namespace heddle
