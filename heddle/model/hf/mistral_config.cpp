#include "heddle/model/hf/mistral_config.h"

namespace heddle {

namespace {

// null means no window.
MistralConfig read(const Config& config, int window) {
  config.refuse_unless("layer_types");  // transformers reads it only in other families
  MistralConfig c{read_decoder_config(config, {.num_key_value_heads = 8})};
  c.sliding_window = read_sliding_window(config, window);
  c.windows.assign(size_t(c.num_hidden_layers), c.sliding_window);
  c.rope = read_rope(config, c);
  return c;
}

}  // namespace

// The first models were published without sliding_window.
MistralConfig read_mistral_config(const Config& config) {
  refuse_foreign(config, "Mistral", {"sliding_window"});
  return read(config, 4096);
}

MixtralConfig read_mixtral_config(const Config& config) {
  refuse_foreign(config, "Mixtral", {"sliding_window", "num_local_experts"});
  MixtralConfig c{read(config, 0)};
  const Experts experts = read_experts(config, {.count = 8, .taken = 2});
  c.num_local_experts = experts.count, c.num_experts_per_tok = experts.taken;
  return c;
}

}  // namespace heddle
