#include "heddle/model/hf/mamba_hybrid_config.h"

#include <algorithm>

namespace heddle {

// A part of each head turns, half where the rope says nothing, whatever stands next to the rope.
BambaConfig read_bamba_config(const Config& config) {
  refuse_foreign(config, "Bamba");
  config.refuse_unless("partial_rotary_factor", {"0.5"});
  BambaConfig c;
  static_cast<DecoderConfig&>(c) = read_decoder_config(
      config, {.sizes = {128000, 4096, 14336, 32, 32, 262144}, .num_key_value_heads = 8, .eps = 1e-5});
  RopePlace place = place_of(c);
  place.partial = 0.5;
  c.rope = read_rope(config, place);
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.mlp_bias = config.optional_bool("mlp_bias", false);
  c.attends.assign(size_t(c.num_hidden_layers), false);
  for (const int l : config.optional_ints("attn_layer_indices", 0, kMaxLayers))
    if (l < c.num_hidden_layers) c.attends[size_t(l)] = true;
  c.mamba = read_mamba2(config, c.hidden_size);
  return c;
}

}  // namespace heddle
