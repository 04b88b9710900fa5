#include "heddle/text/logits_processors.h"

#include <algorithm>
#include <cmath>
#include <map>
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
  Processor(const TextSoFar& text, std::span<const float> logits)
      : text_(text), tokens_(text.tokens), scores_(logits.begin(), logits.end()) {}

  void bias(std::span<const int32_t> sequence, float bias) {
    if (is_next(tokens_, sequence) && exists(sequence.back())) scores_[size_t(sequence.back())] += bias;
  }

  void bias(const TokenBias& biases) {
    for (const auto& [token, bias] : biases.of_token)
      if (exists(token)) scores_[size_t(token)] += bias > TokenBias::kBan ? bias : kNever;
  }

  // Lowers the scores of the tokens of an answer.
  void penalise_use(std::span<const int32_t> answer, double for_presence, double for_each) {
    std::map<int32_t, int> counts;
    for (int32_t token : answer) ++counts[token];
    for (const auto& [token, count] : counts)
      if (exists(token))
        scores_[size_t(token)] = float(double(scores_[size_t(token)]) - for_each * count - for_presence);
  }

  void penalise_repetition(std::span<const int32_t> tokens, float penalty) {
    std::vector<bool> seen(scores_.size());
    for (int32_t token : tokens) {
      if (!exists(token) || seen[size_t(token)]) continue;
      seen[size_t(token)] = true;
      float& score = scores_[size_t(token)];
      score = score < 0 ? score * penalty : score / penalty;
    }
  }

  // Forbids what would complete a run of tokens that `of` has.
  void forbid_ngrams(std::span<const int32_t> of, size_t size) {
    if (tokens_.size() + 1 < size) return;
    for (size_t i = 0; i + size <= of.size(); ++i)
      if (is_next(tokens_, of.subspan(i, size))) bias(of.subspan(i, size), kNever);
  }

  void keep(std::span<const uint32_t> mask) {
    drop([&](size_t i) { return i / 32 >= mask.size() || (mask[i / 32] >> (i % 32) & 1) == 0; });
  }

  void forbid(std::span<const int32_t> tokens) {
    for (int32_t token : tokens)
      if (exists(token)) scores_[size_t(token)] = kNever;
  }

  // Leaves these tokens alone, all as likely.
  void force(std::span<const int32_t> tokens) {
    std::ranges::fill(scores_, kNever);
    for (int32_t token : tokens)
      if (exists(token)) scores_[size_t(token)] = 0;
  }

  // Raises the scores of the ends by |score| (factor^tokens - 1), for the tokens after `start`.
  void raise_ends(size_t start, double factor) {
    if (tokens_.size() <= start) return;
    const double more = std::pow(factor, double(tokens_.size() - start)) - 1;
    std::vector<bool> done(scores_.size());
    for (int32_t token : text_.ends) {
      if (!exists(token) || done[size_t(token)]) continue;
      done[size_t(token)] = true;
      float& score = scores_[size_t(token)];
      if (std::isfinite(score)) score = float(double(score) + std::abs(double(score)) * more);
    }
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

  // Nucleus sampling (Holtzman et al., 2020): drops the least likely tokens that make up 1 - p together. As in
  // transformers, some of equal scores may stay and others not. Its sort leaves open which; here the lower
  // tokens stay.
  void keep_top_p(double p) {
    const std::vector<size_t> order = sorted([&](size_t i) { return -scores_[i]; });
    const double limit = (1 - p) * total();
    double below = 0;
    size_t kept = order.size();
    for (; kept > 1; --kept) {
      below += weight(order[kept - 1]);
      if (below > limit) break;
    }
    std::vector<bool> stays(scores_.size());
    for (size_t i = 0; i < kept; ++i) stays[order[i]] = true;
    drop([&](size_t i) { return !stays[i]; });
  }

  // Top-h (Baghaei Potraghloo et al., 2025): keeps the most likely tokens until they have a part of the entropy
  // of the first 100.
  void keep_top_h(double part) {
    constexpr size_t kFirst = 100;
    std::vector<size_t> order = sorted([&](size_t i) { return -scores_[i]; });
    order.resize(std::min(kFirst, order.size()));
    total();
    double norm = 0, entropy = 0;
    for (size_t i : order) norm += weight(i);
    std::vector<double> terms;
    for (size_t i : order) {
      const double probability = weight(i) / norm;
      terms.push_back(probability > 0 ? -probability * std::log(probability) : 0);
      entropy += terms.back();
    }
    std::vector<bool> kept(scores_.size());
    double sum = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      sum += terms[i];
      if (i > 0 && sum > part * entropy) break;
      kept[order[i]] = true;
    }
    drop([&](size_t i) { return !kept[i]; });
  }

  // Drops tokens below a probability, but for the most likely.
  void keep_probable(double least) {
    const double norm = total();
    drop([&](size_t i) { return weight(i) < least * norm && scores_[i] < top_; });
  }

  // Eta sampling (Hewitt et al., 2022): the limit is lower where the entropy is high.
  void keep_eta(double epsilon) {
    const double norm = total();
    double entropy = 0;
    for (size_t i = 0; i < scores_.size(); ++i)
      if (const double p = weight(i) / norm; p > 0) entropy -= p * std::log(p);
    keep_probable(std::min(epsilon, std::sqrt(epsilon) * std::exp(-entropy)));
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
  const TextSoFar& text_;
  std::span<const int32_t> tokens_;
  std::vector<float> scores_;
  float top_ = 0;
};

// The processors that greedy choices have too, in the order of generate. OpenAI's stand where vLLM has them: the bias first, the
// penalties of the answer's tokens after that of repetition.
void process_always(Processor& scores, const SamplingParams& params, const TextSoFar& text) {
  const auto prompt = text.tokens.first(std::min(text.prompt, text.tokens.size()));
  const size_t length = text.tokens.size(), made = length - prompt.size();
  scores.bias(params.logit_bias);
  for (const SequenceBias& bias : params.sequence_bias) scores.bias(bias.tokens, bias.bias);
  if (params.encoder_repetition_penalty != 1)
    scores.penalise_repetition(prompt, 1 / params.encoder_repetition_penalty);
  if (params.repetition_penalty != 1) scores.penalise_repetition(text.tokens, params.repetition_penalty);
  if (params.presence_penalty != 0 || params.frequency_penalty != 0)
    scores.penalise_use(text.tokens.subspan(prompt.size()), double(params.presence_penalty),
                        double(params.frequency_penalty));
  if (params.no_repeat_ngram_size > 0) scores.forbid_ngrams(text.tokens, size_t(params.no_repeat_ngram_size));
  if (params.encoder_no_repeat_ngram_size > 0)
    scores.forbid_ngrams(prompt, size_t(params.encoder_no_repeat_ngram_size));
  for (const auto& word : params.bad_words_ids) scores.bias(word, kNever);
  if (length < size_t(params.min_length) || made < size_t(params.min_new_tokens)) scores.forbid(text.ends);
  if (params.forced_bos_token_id >= 0 && length == 1) scores.force(std::span(&params.forced_bos_token_id, 1));
  if (!params.forced_eos_token_id.empty() && length + 1 == text.most)
    scores.force(params.forced_eos_token_id);
  if (params.exponential_decay_factor != 1) {
    scores.raise_ends(prompt.size() + size_t(params.exponential_decay_start),
                      double(params.exponential_decay_factor));
  }
  scores.forbid(params.suppress_tokens);
  const size_t begin = prompt.size() <= 1 && params.forced_bos_token_id >= 0 ? 1 : 0;
  if (made == begin) scores.forbid(params.begin_suppress_tokens);
  if (!text.mask.empty()) scores.keep(text.mask);
}

// The processors that only draws have.
void process_draws(Processor& scores, const SamplingParams& params) {
  if (params.temperature != 1) scores.divide(params.temperature);
  if (params.top_h > 0) scores.keep_top_h(double(params.top_h));
  if (params.top_k > 0) scores.keep_top_k(size_t(params.top_k));
  if (params.top_p < 1) scores.keep_top_p(double(params.top_p));
  if (params.min_p > 0) scores.keep_min_p(double(params.min_p));
  if (params.typical_p < 1) scores.keep_typical(double(params.typical_p));
  if (params.epsilon_cutoff > 0) scores.keep_probable(double(params.epsilon_cutoff));
  if (params.eta_cutoff > 0) scores.keep_eta(double(params.eta_cutoff));
}

}  // namespace

std::vector<float> process_logits(const SamplingParams& params, const TextSoFar& text,
                                  std::span<const float> logits) {
  Processor scores(text, logits);
  process_always(scores, params, text);
  if (!params.greedy()) process_draws(scores, params);
  return scores.take();
}

int32_t choose_token(const SamplingParams& params, const TextSoFar& text, std::span<const float> logits,
                     uint32_t draw) {
  const std::vector<float> scores = process_logits(params, text, logits);
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
