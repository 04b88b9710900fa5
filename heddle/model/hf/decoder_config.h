// Shared by the configurations of Llama and its descendants.
#pragma once

#include <string>
#include <vector>

#include "heddle/model/hf/family_config.h"
#include "heddle/model/hf/rope_config.h"

namespace heddle {

struct DecoderConfig {
  int vocab_size = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  int num_hidden_layers = 0;
  int num_attention_heads = 0;
  int num_key_value_heads = 0;
  int head_dim = 0;  // need not be hidden_size / num_attention_heads
  int max_position_embeddings = 0;
  double rms_norm_eps = 0;
  HiddenAct hidden_act = HiddenAct::kSilu;
  bool tie_word_embeddings = false;
  RopeConfig rope;  // rope of all layers, or of those that see all positions
};

// Defaults of a family's class in transformers, for keys that a file lacks.
struct DecoderDefaults {
  int num_key_value_heads = 0;  // 0: num_attention_heads
  int head_dim = 0;             // 0: hidden_size / num_attention_heads
  const char* hidden_act_key = "hidden_act";
  const char* hidden_act = "silu";
  bool tie_word_embeddings = false;
};

// Reads everything but `rope`.
DecoderConfig read_decoder_config(const Config& config, const DecoderDefaults& defaults);

// The rope of families in which all layers share one.
RopeConfig read_rope(const Config& config, const DecoderConfig& decoder);

// The number of experts in a layer, and of those that a token takes: num_local_experts (or num_experts) and
// num_experts_per_tok; `defaults` if a file lacks them.
struct Experts {
  int count = 0, taken = 0;
};
Experts read_experts(const Config& config, const Experts& defaults);

// Positions that each layer sees, 0 for all. The layers that `layer_types` calls sliding_attention have
// `window`; if a file has no such list, the layers that `slides` names.
std::vector<int> read_windows(const Config& config, int layers, int window,
                              bool (*slides)(int layer, int arg), int arg);

}  // namespace heddle
