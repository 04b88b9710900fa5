// Settings by which the next token is chosen, with the names, meanings and order of transformers
// (text/logits_processors.h). A program does the part that its `sample` op has (ops/sample); otherwise a
// caller chooses from logits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/error.h"

namespace heddle {

// Added to the score of a sequence's last token when the text ends with the tokens before it.
struct SequenceBias {
  std::vector<int32_t> tokens;
  float bias = 0;
};

// Numbers that are added to the scores of tokens. kBan and less: the token is never chosen.
struct TokenBias {
  static constexpr float kMost = 100, kBan = -kMost;  // as in OpenAI's logit_bias

  std::map<int32_t, float> of_token;

  bool operator==(const TokenBias&) const = default;
};

// The values that a setting may have.
struct SettingRange {
  double least = 0, most = std::numeric_limits<double>::infinity();
  bool above_least = false, below_most = false;  // the bound itself is left out
  const char* text = "";                         // "": 0 or more

  bool has(double value) const {
    return (above_least ? value > least : value >= least) && (below_most ? value < most : value <= most);
  }
};

// The part that chooses the next token where a setting is not at its default.
enum class Chooser : uint8_t { kProgram, kHost, kHostIfDrawn };

// Describes a setting.
struct SettingHelp {
  const char* text;        // what it does
  const char* group = "";  // heading of its flag in the full help; "": short help shows it too
  SettingRange range = {};
  Chooser chooser = Chooser::kProgram;

  // "leave out tokens less likely than this; 0 to below 1"
  std::string with_range() const { return text + std::string(*range.text ? "; " : "") + range.text; }
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
  float presence_penalty = 0;
  float frequency_penalty = 0;
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
  TokenBias logit_bias;
  std::vector<SequenceBias> sequence_bias;
  std::vector<std::vector<int32_t>> bad_words_ids;  // sequences that are never completed
  std::vector<int32_t> suppress_tokens;             // never chosen
  std::vector<int32_t> begin_suppress_tokens;       // never chosen first
  std::vector<int32_t> forced_eos_token_id;         // one of these ends a text of max_tokens

  bool greedy() const { return temperature == 0; }

  // The names of settings that are in use and that no program does; empty: a program can choose.
  std::string needs_host() const {
    std::string names;
    const auto name = [&](bool is_set, const char* what) {
      if (is_set) names += (names.empty() ? "" : ", ") + std::string(what);
    };
    const auto is_long = [](const auto& tokens) { return tokens.size() > 1; };
    name(std::ranges::any_of(sequence_bias, is_long, &SequenceBias::tokens), "sequence_bias");
    name(std::ranges::any_of(bad_words_ids, is_long), "bad_words_ids");
    name(!forced_eos_token_id.empty(), "forced_eos_token_id");
    const SamplingParams defaults;
    visit(*this, [&]<class T>(const char* what, const T& value, const SettingHelp& help) {
      if (help.chooser == Chooser::kProgram || (help.chooser == Chooser::kHostIfDrawn && greedy())) return;
      visit(defaults, [&](const char* other, const auto& usual, const SettingHelp&) {
        if (std::string_view(what) == other) name(double(value) != double(usual), what);
      });
    });
    return names;
  }

  // Calls v(name, field, SettingHelp) for each field that is a single number.
  template <class Self, class V>
  static void visit(Self& self, V&& v) {
    constexpr SettingRange kAnyCount{.text = "0 (any) or a number of tokens"},
        kBelow1{.most = 1, .below_most = true, .text = "0 to below 1"},
        kPart{.most = 1, .above_least = true, .text = "above 0, to 1"},
        kFactor{.most = 100, .above_least = true, .text = "above 0, to 100"},
        kPenalty{.least = -2, .most = 2, .text = "-2 to 2"};
    using enum Chooser;
    v("temperature", self.temperature,
      {"logits are divided by it; 0 takes the most likely token", "", {.most = 100, .text = "0 to 100"}});
    v("top_k", self.top_k,
      {"choose among this many most likely tokens", "", {.text = "0 (all) or a number of tokens"}});
    v("top_p", self.top_p,
      {"choose among the most likely tokens that make up this probability",
       "",
       {.most = 1, .text = "0 (the likeliest token) to 1"}});
    v("min_p", self.min_p,
      {"leave out tokens less likely than this fraction of the most likely one", kChoiceGroup, kBelow1});
    v("typical_p", self.typical_p,
      {"choose among the tokens whose surprise is nearest to the mean and that make up this probability",
       kChoiceGroup, kPart, kHostIfDrawn});
    v("repetition_penalty", self.repetition_penalty,
      {"divides positive and multiplies negative logits of tokens seen before; 1 for none", kChoiceGroup,
       kFactor});
    v("presence_penalty", self.presence_penalty,
      {"subtracted from the logits of tokens that the answer has", kChoiceGroup, kPenalty});
    v("frequency_penalty", self.frequency_penalty,
      {"subtracted from the logit of a token, times how often the answer has it", kChoiceGroup, kPenalty});
    v("no_repeat_ngram_size", self.no_repeat_ngram_size,
      {"never make a run of this many tokens a second time", kChoiceGroup, kAnyCount, kHost});
    v("top_h", self.top_h,
      {"choose among the most likely tokens that make up this part of the entropy of the first 100",
       kChoiceGroup,
       {.most = 1, .text = "0 (all), or above 0, to 1"},
       kHostIfDrawn});
    v("epsilon_cutoff", self.epsilon_cutoff,
      {"leave out tokens less likely than this", kChoiceGroup, kBelow1, kHostIfDrawn});
    v("eta_cutoff", self.eta_cutoff,
      {"leave out tokens less likely than this, or than less if many are likely", kChoiceGroup, kBelow1,
       kHostIfDrawn});
    v("encoder_repetition_penalty", self.encoder_repetition_penalty,
      {"multiplies positive and divides negative logits of the prompt's tokens; 1 for none", kChoiceGroup,
       kFactor, kHost});
    v("encoder_no_repeat_ngram_size", self.encoder_no_repeat_ngram_size,
      {"never make a run of this many tokens that the prompt has", kChoiceGroup, kAnyCount, kHost});
    v("min_length", self.min_length, {"no end before prompt and answer have this many tokens", kEndGroup});
    v("min_new_tokens", self.min_new_tokens, {"no end before the answer has this many tokens", kEndGroup});
    v("forced_bos_token_id", self.forced_bos_token_id,
      {"the token after a prompt of one token",
       kChoiceGroup,
       {.least = -1, .text = "a token, or -1 for any"},
       kHost});
    v("exponential_decay_start", self.exponential_decay_start,
      {"the end becomes more likely after this many new tokens; see exponential_decay_factor", kEndGroup});
    v("exponential_decay_factor", self.exponential_decay_factor,
      {"makes the end more likely with each token after exponential_decay_start; 1 for no change", kEndGroup,
       kFactor, kHost});
    v("seed", self.seed,
      {"begins the random numbers: the same seed gives the same text", "", {.text = "0 to 2^64 - 1"}});
  }

  // Throws an Error that names the field, its value and its range.
  void validate() const {
    visit(*this, [](const char* name, const auto& value, const SettingHelp& help) {
      check(name, value, help.range.has(double(value)), *help.range.text ? help.range.text : "0 or more");
    });
    for (const auto& [token, bias] : logit_bias.of_token)
      check("a number in logit_bias", bias, std::abs(bias) <= TokenBias::kMost, "-100 to 100");
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
