// What Llama and its descendants share: projections as their checkpoints name them, and sizes.
#pragma once

#include "heddle/model/build/family.h"
#include "heddle/model/hf/decoder_config.h"

namespace heddle {

// "model.layers.3."
std::string layer_path(i32 layer);

Heads heads_of(const DecoderConfig& c);

// The projections of a layer. `qkv_rows` has the halves of query and key heads side by side, as rope wants them, and
// `gate_up_rows` each gate beside its value.
Rows qkv_rows(const std::string& at, const Heads& heads, bool bias);
Rows gate_up_rows(const std::string& at, i32 inner, bool bias = false);
Rows rows_of(const std::string& tensor, i32 count, bool bias = false);

// The matrix of the logits: the embedding where they are tied.
Weight head_of(Builder& b, const DecoderConfig& c, const Weight& embed);

ModelInfo info_of(const DecoderConfig& c, const Inventory& tensors);

}  // namespace heddle
