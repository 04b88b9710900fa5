// How the next token is chosen, with the names that transformers has. The arithmetic is an op's; this is what
// a caller sets. Order of application: repetition penalty, temperature, top-k, top-p, min-p.
#pragma once

#include <cmath>
#include <cstdint>

#include "heddle/base/error.h"

namespace heddle {

struct SamplingParams {
  float temperature = 0;
  int32_t top_k = 0;
  float top_p = 1;
  float min_p = 0;
  float repetition_penalty = 1;
  uint64_t seed = 0;

  bool greedy() const { return temperature == 0; }

  // Calls v(name, field, help) for each field.
  template <class Self, class V>
  static void visit(Self& self, V&& v) {
    v("temperature", self.temperature, "logits are divided by it; 0 takes the most likely token, 0 to 100");
    v("top_k", self.top_k, "choose among this many most likely tokens; 0 for all");
    v("top_p", self.top_p, "choose among the likeliest tokens that make up this probability, above 0 to 1");
    v("min_p", self.min_p, "leave out tokens less likely than this share of the likeliest, 0 to below 1");
    v("repetition_penalty", self.repetition_penalty,
      "divides positive and multiplies negative logits of tokens seen before, above 0 to 100; 1 for none");
    v("seed", self.seed, "begins the random numbers: the same seed gives the same text, 0 to 2^64 - 1");
  }

  // Throws an Error that names the field, its value and its range.
  void validate() const {
    constexpr float kMost = 100;
    check("temperature", temperature, temperature >= 0 && temperature <= kMost, "0 to 100");
    check("top_k", top_k, top_k >= 0, "0 (all) or a number of tokens");
    check("top_p", top_p, top_p > 0 && top_p <= 1, "above 0, to 1");
    check("min_p", min_p, min_p >= 0 && min_p < 1, "0 to below 1");
    check("repetition_penalty", repetition_penalty, repetition_penalty > 0 && repetition_penalty <= kMost,
          "above 0, to 100");
  }

 private:
  template <class T>
  static void check(const char* name, T value, bool ok, const char* range) {
    require(ok, "[sampling] {} is {}; it must be {}", name, value, range);
  }
};

}  // namespace heddle
