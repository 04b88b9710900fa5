#include "heddle/model/hf/llama_config.h"

namespace heddle {

LlamaConfig read_llama_config(const Config& config) {
  refuse_foreign(config, "LlamaForCausalLM");
  config.refuse_unless("pretraining_tp", {"1"});
  LlamaConfig c{read_decoder_config(config, {})};
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.mlp_bias = config.optional_bool("mlp_bias", false);
  c.rope = read_rope(config, c);
  return c;
}

}  // namespace heddle
