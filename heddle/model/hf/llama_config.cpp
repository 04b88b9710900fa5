#include "heddle/model/hf/llama_config.h"

namespace heddle {

LlamaConfig read_llama_config(const Config& config) {
  refuse_foreign(config, "Llama", {"sliding_window"});
  note_unless(config, "pretraining_tp", {"1"}, "it only splits products in training; it has no effect here");
  note_unless(config, "sliding_window", {}, "Llama has no window in transformers; all positions are seen");
  LlamaConfig c{read_decoder_config(config, {.sizes = {32000, 4096, 11008, 32, 32, 2048}})};
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.mlp_bias = config.optional_bool("mlp_bias", false);
  c.rope = read_rope(config, c);
  return c;
}

}  // namespace heddle
