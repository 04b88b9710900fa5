// The configuration of Llama 2 and 3.
#pragma once

#include "heddle/model/hf/family_config.h"
#include "heddle/model/hf/rope_config.h"

namespace heddle {

struct LlamaConfig {
  int vocab_size = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  int num_hidden_layers = 0;
  int num_attention_heads = 0;
  int num_key_value_heads = 0;
  int head_dim = 0;  // apart from hidden_size / num_attention_heads
  int max_position_embeddings = 0;
  double rms_norm_eps = 0;
  HiddenAct hidden_act = HiddenAct::kSilu;
  bool attention_bias = false;  // of the q, k, v and o projections
  bool mlp_bias = false;        // of gate, up and down
  bool tie_word_embeddings = false;
  RopeConfig rope;

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v("vocab_size", s.vocab_size);
    v("hidden_size", s.hidden_size);
    v("intermediate_size", s.intermediate_size);
    v("num_hidden_layers", s.num_hidden_layers);
    v("num_attention_heads", s.num_attention_heads);
    v("num_key_value_heads", s.num_key_value_heads);
    v("head_dim", s.head_dim);
    v("max_position_embeddings", s.max_position_embeddings);
    v("rms_norm_eps", s.rms_norm_eps);
    v("hidden_act", s.hidden_act);
    v("attention_bias", s.attention_bias);
    v("mlp_bias", s.mlp_bias);
    v("tie_word_embeddings", s.tie_word_embeddings);
    v("rope", s.rope);
  }
};

LlamaConfig read_llama_config(const Config& config);

}  // namespace heddle
