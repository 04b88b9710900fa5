// Settings by which the next token is chosen, with the names, meanings and order of transformers
// (text/logits_processors.h). A program does the part that its `sample` op has (ops/sample); otherwise a
// caller chooses from logits.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "heddle/base/error.h"

namespace heddle {

// Added to the score of a sequence's last token when the text ends with the tokens before it.
struct SequenceBias {
  std::vector<int32_t> tokens;
  float bias = 0;
};

// Describes a setting to people.
struct SettingHelp {
  const char* text;
  const char* group = "";  // heading of its flag in the full help; "": short help shows it too
};

constexpr const char* kChoiceGroup = "More on how tokens are chosen";
constexpr const char* kEndGroup = "Where an answer ends";
constexpr const char* kPrintGroup = "What is printed";

struct SamplingParams {
  float temperature = 0;
  int32_t top_k = 0;
  float top_p = 1;
  float min_p = 0;
  float typical_p = 1;
  float repetition_penalty = 1;
  int32_t no_repeat_ngram_size = 0;
  float top_h = 0;
  float epsilon_cutoff = 0;
  float eta_cutoff = 0;
  float encoder_repetition_penalty = 1;
  int32_t encoder_no_repeat_ngram_size = 0;
  int32_t min_length = 0;
  int32_t min_new_tokens = 0;
  int32_t forced_bos_token_id = -1;
  int32_t exponential_decay_start = 0;
  float exponential_decay_factor = 1;
  uint64_t seed = 0;
  std::vector<SequenceBias> sequence_bias;
  std::vector<std::vector<int32_t>> bad_words_ids;  // sequences that are never completed
  std::vector<int32_t> suppress_tokens;             // never chosen
  std::vector<int32_t> begin_suppress_tokens;       // never chosen first
  std::vector<int32_t> forced_eos_token_id;         // one of these ends a text of max_tokens

  bool greedy() const { return temperature == 0; }

  // The names of settings that are in use and that no program does; empty: a program can choose.
  std::string needs_host() const {
    std::string names;
    const auto name = [&](bool set, const char* what) {
      if (set) names += (names.empty() ? "" : ", ") + std::string(what);
    };
    name(!sequence_bias.empty(), "sequence_bias");
    name(no_repeat_ngram_size > 0, "no_repeat_ngram_size");
    name(!bad_words_ids.empty(), "bad_words_ids");
    name(!suppress_tokens.empty(), "suppress_tokens");
    name(!begin_suppress_tokens.empty(), "begin_suppress_tokens");
    name(!forced_eos_token_id.empty(), "forced_eos_token_id");
    name(forced_bos_token_id >= 0, "forced_bos_token_id");
    name(min_length > 0, "min_length");
    name(min_new_tokens > 0, "min_new_tokens");
    name(encoder_repetition_penalty != 1, "encoder_repetition_penalty");
    name(encoder_no_repeat_ngram_size > 0, "encoder_no_repeat_ngram_size");
    name(exponential_decay_factor != 1, "exponential_decay_factor");
    name(!greedy() && typical_p < 1, "typical_p");
    name(!greedy() && top_h > 0, "top_h");
    name(!greedy() && epsilon_cutoff > 0, "epsilon_cutoff");
    name(!greedy() && eta_cutoff > 0, "eta_cutoff");
    return names;
  }

  // Calls v(name, field, help) for each field that is a single number.
  template <class Self, class V>
  static void visit(Self& self, V&& v) {
    v("temperature", self.temperature, {"logits are divided by it; 0 takes the most likely token, 0 to 100"});
    v("top_k", self.top_k, {"choose among this many most likely tokens; 0 for all"});
    v("top_p", self.top_p,
      {"choose among the most likely tokens that make up this probability, 0 (the likeliest) to 1; tokens "
       "exactly as "
       "likely as the last of them stay too where the program chooses, and as many as fit where the host "
       "does"});
    v("min_p", self.min_p,
      {"leave out tokens less likely than this fraction of the most likely one, 0 to below 1", kChoiceGroup});
    v("typical_p", self.typical_p,
      {"choose among the tokens whose surprise is nearest to the mean and that make up this probability, "
       "above 0 to 1",
       kChoiceGroup});
    v("repetition_penalty", self.repetition_penalty,
      {"divides positive and multiplies negative logits of tokens seen before, above 0 to 100; 1 for none",
       kChoiceGroup});
    v("no_repeat_ngram_size", self.no_repeat_ngram_size,
      {"never make a run of this many tokens a second time; 0 for any", kChoiceGroup});
    v("top_h", self.top_h,
      {"choose among the most likely tokens that make up this part of the entropy of the first 100, above 0 "
       "to 1; "
       "0 for all",
       kChoiceGroup});
    v("epsilon_cutoff", self.epsilon_cutoff,
      {"leave out tokens less likely than this, 0 to below 1", kChoiceGroup});
    v("eta_cutoff", self.eta_cutoff,
      {"leave out tokens less likely than this, or than less if many are likely, 0 to below 1",
       kChoiceGroup});
    v("encoder_repetition_penalty", self.encoder_repetition_penalty,
      {"multiplies positive and divides negative logits of the prompt's tokens, above 0 to 100; 1 for none",
       kChoiceGroup});
    v("encoder_no_repeat_ngram_size", self.encoder_no_repeat_ngram_size,
      {"never make a run of this many tokens that the prompt has; 0 for any", kChoiceGroup});
    v("min_length", self.min_length, {"no end before prompt and answer have this many tokens", kEndGroup});
    v("min_new_tokens", self.min_new_tokens, {"no end before the answer has this many tokens", kEndGroup});
    v("forced_bos_token_id", self.forced_bos_token_id,
      {"the token after a prompt of one token; -1 for any", kChoiceGroup});
    v("exponential_decay_start", self.exponential_decay_start,
      {"the end becomes more likely after this many new tokens; see exponential_decay_factor", kEndGroup});
    v("exponential_decay_factor", self.exponential_decay_factor,
      {"makes the end more likely with each token after exponential_decay_start, above 0 to 100; 1 for no "
       "change",
       kEndGroup});
    v("seed", self.seed, {"begins the random numbers: the same seed gives the same text, 0 to 2^64 - 1"});
  }

  // Throws an Error that names the field, its value and its range.
  void validate() const {
    constexpr float kMost = 100;
    check("temperature", temperature, temperature >= 0 && temperature <= kMost, "0 to 100");
    check("top_k", top_k, top_k >= 0, "0 (all) or a number of tokens");
    check("top_p", top_p, top_p >= 0 && top_p <= 1, "0 (the likeliest token) to 1");
    check("min_p", min_p, min_p >= 0 && min_p < 1, "0 to below 1");
    check("typical_p", typical_p, typical_p > 0 && typical_p <= 1, "above 0, to 1");
    check("repetition_penalty", repetition_penalty, repetition_penalty > 0 && repetition_penalty <= kMost,
          "above 0, to 100");
    check("no_repeat_ngram_size", no_repeat_ngram_size, no_repeat_ngram_size >= 0,
          "0 (any) or a number of tokens");
    check("top_h", top_h, top_h >= 0 && top_h <= 1, "0 (all), or above 0, to 1");
    check("epsilon_cutoff", epsilon_cutoff, epsilon_cutoff >= 0 && epsilon_cutoff < 1, "0 to below 1");
    check("eta_cutoff", eta_cutoff, eta_cutoff >= 0 && eta_cutoff < 1, "0 to below 1");
    check("encoder_repetition_penalty", encoder_repetition_penalty,
          encoder_repetition_penalty > 0 && encoder_repetition_penalty <= kMost, "above 0, to 100");
    check("encoder_no_repeat_ngram_size", encoder_no_repeat_ngram_size, encoder_no_repeat_ngram_size >= 0,
          "0 (any) or a number of tokens");
    check("min_length", min_length, min_length >= 0, "a number of tokens");
    check("min_new_tokens", min_new_tokens, min_new_tokens >= 0, "a number of tokens");
    check("forced_bos_token_id", forced_bos_token_id, forced_bos_token_id >= -1, "a token, or -1 for any");
    check("exponential_decay_start", exponential_decay_start, exponential_decay_start >= 0,
          "a number of tokens");
    check("exponential_decay_factor", exponential_decay_factor,
          exponential_decay_factor > 0 && exponential_decay_factor <= kMost, "above 0, to 100");
    for (const SequenceBias& bias : sequence_bias) {
      check("sequence_bias", bias.bias, !std::isnan(bias.bias), "a number");
      check("the length of a sequence in sequence_bias", bias.tokens.size(), !bias.tokens.empty(),
            "positive");
    }
    for (const auto& word : bad_words_ids)
      check("the length of a sequence in bad_words_ids", word.size(), !word.empty(), "positive");
  }

 private:
  template <class T>
  static void check(const char* name, T value, bool ok, const char* range) {
    require(ok, "[sampling] {} is {}; it must be {}", name, value, range);
  }
};

}  // namespace heddle
