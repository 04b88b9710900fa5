// The configuration of Gemma 4's text model.
#pragma once

#include "heddle/model/hf/decoder_config.h"

namespace heddle {

// head_dim, num_key_value_heads and local_rope are those of layers with a window, the others of those that see all positions.
struct Gemma4Config : DecoderConfig {
  int global_head_dim = 0, global_kv_heads = 0;
  bool keys_are_values = false;  // values are projected as keys in layers that see all positions
  int first_shared = 0;  // layers from here on have the keys and values of the last one before of their kind
  bool wide_shared_mlp = false;  // such layers have an MLP twice as wide
  int per_layer_input = 0;       // elements of each layer's own embeddings; 0: there are none
  int per_layer_vocab = 0;       // tokens that have them
  Experts experts = {};          // next to the MLP; count 0: there are none
  int moe_intermediate_size = 0;
  double final_logit_softcapping = 0;
  RopeConfig local_rope = {};

  bool slides(int layer) const { return windows[size_t(layer)] > 0; }
  bool shares(int layer) const { return layer >= first_shared; }
};

Gemma4Config read_gemma4_config(const Config& config);

}  // namespace heddle
