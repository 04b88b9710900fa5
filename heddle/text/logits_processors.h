// Chooses a token from logits as transformers' generate does, in its order. It has everything that a
// program's `sample` op has, and the settings that the op lacks.
#pragma once

#include <span>
#include <vector>

#include "heddle/text/sampling_params.h"

namespace heddle {

// The scores after transformers' processors. Minus infinity: the token must not be chosen. `tokens`: the
// whole text so far, with the prompt.
std::vector<float> process_logits(const SamplingParams& params, std::span<const int32_t> tokens,
                                  std::span<const float> logits);

// Chooses from processed scores: the most likely token, or draw number `draw` of the seed, which equals a
// program's draw. Throws Error when no token is left.
int32_t choose_token(const SamplingParams& params, std::span<const int32_t> tokens,
                     std::span<const float> logits, uint32_t draw);

double log_sum_exp(std::span<const float> logits);

}  // namespace heddle
