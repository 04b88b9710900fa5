// Chooses a token from logits as transformers' generate does, in its order. It has everything that a
// program's `sample` op has, and the settings that the op lacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "heddle/text/sampling_params.h"

namespace heddle {

// The text that the settings of lengths, ends and prompts ask about.
struct TextSoFar {
  std::span<const int32_t> tokens;      // with the prompt
  size_t prompt = 0;                    // the tokens of the prompt
  std::span<const int32_t> ends = {};   // tokens that end the text
  size_t most = SIZE_MAX;               // with this many tokens, prompt included, the text ends
  std::span<const uint32_t> mask = {};  // bits of tokens that may come next, 32 a word; empty: all
};

// The scores after transformers' processors. Minus infinity: the token must not be chosen.
std::vector<float> process_logits(const SamplingParams& params, const TextSoFar& text,
                                  std::span<const float> logits);

// Chooses from processed scores: the most likely token, or draw number `draw` of the seed, which equals a
// program's draw. Throws Error when no token is left.
int32_t choose_token(const SamplingParams& params, const TextSoFar& text, std::span<const float> logits,
                     uint32_t draw);

double log_sum_exp(std::span<const float> logits);

}  // namespace heddle
