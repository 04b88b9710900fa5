// What Llama and its descendants share: projections as their checkpoints name them, and sizes.
#pragma once

#include "heddle/model/build/family.h"
#include "heddle/model/hf/decoder_config.h"

namespace heddle {

// "model.layers.3."
std::string layer_path(i32 layer);

Heads heads_of(const DecoderConfig& c);

// The projections of a layer. `qkv_rows` has the halves of query and key heads side by side, as rope wants them.
Rows qkv_rows(const std::string& at, const Heads& heads, bool bias);
Rows rows_of(const std::string& tensor, i32 count, bool bias = false);

// act(gate h) * (up h), projected down (Shazeer, 2020: "GLU Variants Improve Transformer").
Tensor gated_mlp(Builder& b, const DecoderConfig& c, const std::string& at, Tensor h, bool bias = false);
// The same, `inner` wide, of the projections at + gate_proj, up_proj and down_proj.
struct GatedMlp {
  std::string at;
  i32 inner = 0;
  HiddenAct act = HiddenAct::kSilu;
  bool bias = false;
};
Tensor gated_mlp(Builder& b, const GatedMlp& mlp, Tensor h);

// What comes before the layers: the embeddings of the step's tokens, and the table they come from. `scaled`: times
// sqrt(hidden_size), which is rounded to the checkpoint's own type as transformers has it there: in bf16
// sqrt(3072) = 55.4256 is 55.5.
struct Embedded {
  Weight table;
  Tensor x;
};
Embedded embed_tokens(Builder& b, const DecoderConfig& c, bool scaled = false);
// And after them: the norm of x and the logits, by the `table` of the embeddings where they are tied.
void finish(Builder& b, const DecoderConfig& c, Tensor x, const Weight& table, const Rms& rms,
            double softcap = 0);

// `windows`: the positions that each layer sees, 0: all; none: all layers see all.
ModelInfo info_of(const DecoderConfig& c, const Inventory& tensors, std::span<const int> windows = {});

}  // namespace heddle
