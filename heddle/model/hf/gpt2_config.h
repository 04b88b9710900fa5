// The configuration of GPT-2.
#pragma once

#include "heddle/model/hf/family_config.h"

namespace heddle {

struct Gpt2Config {
  int vocab_size = 0;
  int n_positions = 0;
  int n_embd = 0;
  int n_layer = 0;
  int n_head = 0;
  int n_inner = 0;  // 4 n_embd if the file has none
  HiddenAct activation_function = HiddenAct::kGeluTanh;
  double layer_norm_epsilon = 0;
  bool scale_attn_weights = true;
  bool scale_attn_by_inverse_layer_idx = false;
  bool tie_word_embeddings = true;

  // The factor of a layer's scores.
  double attention_scale(int layer) const;

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v("vocab_size", s.vocab_size);
    v("n_positions", s.n_positions);
    v("n_embd", s.n_embd);
    v("n_layer", s.n_layer);
    v("n_head", s.n_head);
    v("n_inner", s.n_inner);
    v("activation_function", s.activation_function);
    v("layer_norm_epsilon", s.layer_norm_epsilon);
    v("scale_attn_weights", s.scale_attn_weights);
    v("scale_attn_by_inverse_layer_idx", s.scale_attn_by_inverse_layer_idx);
    v("tie_word_embeddings", s.tie_word_embeddings);
  }
};

Gpt2Config read_gpt2_config(const Config& config);

}  // namespace heddle
