// Attention with linear biases (Press et al., 2022: "Train Short, Test Long"), as transformers computes it for Falcon.
#pragma once

#include <vector>

#include "heddle/model/build/builder.h"

namespace heddle {

// Returns what scores of each head get for each position: [heads.query, columns], with columns for all chunks that attention may
// load: the head's slope times the position, all three rounded to bf16, divided by sqrt(heads.dim).
std::vector<float> alibi_of(const Heads& heads, i32 positions);

}  // namespace heddle
