// Mamba-2 as a part of a layer (Dao and Gu, 2024: "Transformers are SSMs").
#pragma once

#include "heddle/model/build/decoder.h"
#include "heddle/model/hf/mamba2_config.h"

namespace heddle {

// The projections, the convolution, the state space, its norm and its gate, at "model.layers.3.mamba.".
Tensor mamba2(Builder& b, const Mamba2Config& c, double eps, const std::string& at, Tensor h);

// True if some layer does not attend.
bool has_mamba(const std::vector<bool>& attends);

}  // namespace heddle
