#include "heddle/model/hf/mistral_config.h"

namespace heddle {

MistralConfig read_mistral_config(const Config& config) {
  refuse_foreign(config, "MistralForCausalLM", {"sliding_window"});
  config.refuse_unless("layer_types");  // transformers reads them in other families
  MistralConfig c{read_decoder_config(config, {.num_key_value_heads = 8})};
  // null stands for no window; the first models were published without the key.
  if (!config.is_null("sliding_window"))
    c.sliding_window = config.optional_int("sliding_window", 4096, 1, kMaxPositions);
  c.rope = read_rope(config, c);
  return c;
}

}  // namespace heddle
