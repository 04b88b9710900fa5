// How the next token is chosen, with the names, meanings and order of transformers: sequence bias, repetition
// penalty, no repeated n-grams, bad words, temperature, top-k, top-p, min-p, typical-p. A program does the
// part that its `sample` op has (ops/sample); otherwise a caller chooses from logits
// (text/logits_processors.h).
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

struct SamplingParams {
  float temperature = 0;
  int32_t top_k = 0;
  float top_p = 1;
  float min_p = 0;
  float typical_p = 1;
  float repetition_penalty = 1;
  int32_t no_repeat_ngram_size = 0;
  uint64_t seed = 0;
  std::vector<SequenceBias> sequence_bias;
  std::vector<std::vector<int32_t>> bad_words_ids;  // sequences that are never completed

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
    name(!greedy() && typical_p < 1, "typical_p");
    return names;
  }

  // Calls v(name, field, help) for each field that is a single number.
  template <class Self, class V>
  static void visit(Self& self, V&& v) {
    v("temperature", self.temperature, "logits are divided by it; 0 takes the most likely token, 0 to 100");
    v("top_k", self.top_k, "choose among this many most likely tokens; 0 for all");
    v("top_p", self.top_p, "choose among the likeliest tokens that make up this probability, above 0 to 1");
    v("min_p", self.min_p, "leave out tokens less likely than this share of the likeliest, 0 to below 1");
    v("typical_p", self.typical_p,
      "choose among the tokens whose surprise is nearest to the mean and that make up this probability, "
      "above 0 to 1");
    v("repetition_penalty", self.repetition_penalty,
      "divides positive and multiplies negative logits of tokens seen before, above 0 to 100; 1 for none");
    v("no_repeat_ngram_size", self.no_repeat_ngram_size,
      "never make a run of this many tokens a second time; 0 for any");
    v("seed", self.seed, "begins the random numbers: the same seed gives the same text, 0 to 2^64 - 1");
  }

  // Throws an Error that names the field, its value and its range.
  void validate() const {
    constexpr float kMost = 100;
    check("temperature", temperature, temperature >= 0 && temperature <= kMost, "0 to 100");
    check("top_k", top_k, top_k >= 0, "0 (all) or a number of tokens");
    check("top_p", top_p, top_p > 0 && top_p <= 1, "above 0, to 1");
    check("min_p", min_p, min_p >= 0 && min_p < 1, "0 to below 1");
    check("typical_p", typical_p, typical_p > 0 && typical_p <= 1, "above 0, to 1");
    check("repetition_penalty", repetition_penalty, repetition_penalty > 0 && repetition_penalty <= kMost,
          "above 0, to 100");
    check("no_repeat_ngram_size", no_repeat_ngram_size, no_repeat_ngram_size >= 0,
          "0 (any) or a number of tokens");
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
