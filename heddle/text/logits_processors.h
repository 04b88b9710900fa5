// Chooses a token from logits as transformers' generate does, in its order: what a program's `sample` op leaves out
// is here, and what it has as well.
#pragma once

#include <span>
#include <vector>

#include "heddle/text/sampling_params.h"

namespace heddle {

// The scores after transformers' processors; minus infinity: the token is not to be chosen. `tokens`: the text so
// far, prompt and all.
std::vector<float> process_logits(const SamplingParams& params, std::span<const int32_t> tokens,
                                  std::span<const float> logits);

// The token that the processed scores give: the likeliest, or draw number `draw` of the seed, which is the draw that
// a program would make. Throws Error where no token is left.
int32_t choose_token(const SamplingParams& params, std::span<const int32_t> tokens,
                     std::span<const float> logits, uint32_t draw);

double log_sum_exp(std::span<const float> logits);

}  // namespace heddle
