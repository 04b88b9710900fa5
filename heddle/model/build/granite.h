// The parts that Granite's families share: Llama with four multipliers, of embeddings, scores, residuals and logits (Yang
// et al., 2022: "Tensor Programs V").
#pragma once

#include <functional>

#include "heddle/model/build/decoder.h"
#include "heddle/model/build/mixture.h"
#include "heddle/model/hf/granite_config.h"

namespace heddle {

// A layer of two parts, which are functions of normalised rows.
using GranitePart = std::function<Tensor(Tensor h)>;
Tensor granite_layer(Builder& b, const GraniteConfig& c, i32 l, Tensor x, const GranitePart& mixer,
                     const GranitePart& mlp);

// Its attention. `rotary` may be missing: then no heads turn.
GranitePart granite_attention(Builder& b, const GraniteConfig& c, i32 l, Tensor rotary);

// The mixture of a layer. `inner` is the width of an expert.
Tensor granite_mixture(Builder& b, i32 l, i32 inner, HiddenAct act, const Experts& experts, Tensor h);

// The model, but for its layers.
DecoderModel granite_model(const GraniteConfig& c);

}  // namespace heddle
