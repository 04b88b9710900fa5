// Shared by Llama and its descendants: projections by their names in checkpoints, and sizes.
#pragma once

#include "heddle/model/build/family.h"
#include "heddle/model/hf/decoder_config.h"

namespace heddle {

// Path such as "model.layers.3.".
std::string layer_path(i32 layer);

Heads heads_of(const DecoderConfig& c);

// The projections of a layer. `qkv_rows` makes the two halves of query and key heads adjacent, as rope needs
// them.
Rows qkv_rows(const std::string& at, const Heads& heads, bool bias);
Rows rows_of(const std::string& tensor, i32 count, bool bias = false);

// act(gate h) * (up h), projected down (Shazeer, 2020: "GLU Variants Improve Transformer").
Tensor gated_mlp(Builder& b, const DecoderConfig& c, const std::string& at, Tensor h, bool bias = false);
// Same, with `inner` columns and the projections at + gate_proj, up_proj and down_proj.
struct GatedMlp {
  std::string at;
  i32 inner = 0;
  HiddenAct act = HiddenAct::kSilu;
  bool bias = false;
};
Tensor gated_mlp(Builder& b, const GatedMlp& mlp, Tensor h);

// The beginning of a model: the embeddings of the step's tokens, and their table. `scaled` multiplies by
// sqrt(hidden_size), rounded to the checkpoint's dtype as in transformers: in bf16 sqrt(3072) = 55.4256
// becomes 55.5.
struct Embedded {
  Weight table;
  Tensor x;
};
Embedded embed_tokens(Builder& b, const DecoderConfig& c, bool scaled = false);
// The end of a model: the norm of x and the logits. They use the `table` of the embeddings if it is tied.
void finish(Builder& b, const DecoderConfig& c, Tensor x, const Weight& table, const Rms& rms,
            double softcap = 0);

// `windows`: the positions that each layer sees, 0: all. Without windows all layers see all positions.
ModelInfo info_of(const DecoderConfig& c, const Inventory& tensors, std::span<const int> windows = {});

}  // namespace heddle
