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
  double rms_norm_eps = 0;  // all norms have it, whatever their kind
  HiddenAct hidden_act = HiddenAct::kSilu;
  bool tie_word_embeddings = false;
  bool attention_bias = false;  // on the projections that a family's class says
  bool mlp_bias = false;
  std::vector<int> windows = {};  // positions that each layer sees, 0: all; none: all layers see all
  RopeConfig rope = {};           // rope of all layers, or of those that see all positions
};

struct DefaultSizes {
  int vocab = 0, hidden = 0, intermediate = 0, layers = 0, heads = 0, positions = 0;
};

// Defaults of a family's class in transformers, for keys that a file lacks.
struct DecoderDefaults {
  DefaultSizes sizes;
  int num_key_value_heads = 0;  // 0: num_attention_heads
  int head_dim = 0;             // 0: hidden_size / num_attention_heads
  const char* hidden_act_key = "hidden_act";
  const char* hidden_act = "silu";
  bool tie_word_embeddings = false;
  const char* eps_key = "rms_norm_eps";
  double eps = 1e-6;
};

// Reads everything but `rope`.
DecoderConfig read_decoder_config(const Config& config, const DecoderDefaults& defaults);

// The place of a rope whose family turns whole heads.
RopePlace place_of(const DecoderConfig& decoder);
// The rope of families in which all layers share one.
RopeConfig read_rope(const Config& config, const DecoderConfig& decoder);

// The number of experts in a layer, and of those that a token takes: num_local_experts (or num_experts) and
// num_experts_per_tok; `defaults` if a file lacks them.
struct Experts {
  int count = 0, taken = 0;
};
Experts read_experts(const Config& config, const Experts& defaults);

// sliding_window: the positions that some layers see. 0: all, where it is null (or 0, if `fallback` is).
int read_sliding_window(const Config& config, int fallback);

// Positions that each layer sees, 0 for all. The layers that `layer_types` calls sliding_attention have
// `window`; if a file has no such list, the layers that `slides` names.
std::vector<int> read_windows(const Config& config, int layers, int window,
                              bool (*slides)(int layer, int arg), int arg);

}  // namespace heddle
