// The parts that Granite's families share: Llama with four multipliers, of embeddings, scores, residuals and logits (Yang
// et al., 2022: "Tensor Programs V").
#pragma once

#include <functional>

#include "heddle/model/build/decoder.h"
#include "heddle/model/build/mixture.h"
#include "heddle/model/hf/granite_config.h"

namespace heddle {

// A layer whose second part is `mlp`. `rotary` may be missing: then no heads turn.
Tensor granite_layer(Builder& b, const GraniteConfig& c, i32 l, Tensor x, Tensor rotary,
                     const std::function<Tensor(Tensor h)>& mlp);

// The mixture of a layer. `inner` is the width of an expert.
Tensor granite_mixture(Builder& b, i32 l, i32 inner, HiddenAct act, const Experts& experts, Tensor h);

// The model, but for its layers.
DecoderModel granite_model(const GraniteConfig& c);

}  // namespace heddle
