#include "heddle/model/hf/llama4_config.h"

#include <algorithm>

#include <fmt/format.h>

namespace heddle {
namespace {

// A list has 1 for each layer that turns; without one, each layer but the last of `interval` turns.
std::vector<bool> read_turns(const Config& config, int layers) {
  const std::vector<double> given = config.optional_numbers("no_rope_layers", 0, 1);
  const int interval = config.optional_int("no_rope_layer_interval", 4, 1, kMaxLayers);
  if (!given.empty() && given.size() < size_t(layers))
    config.reject("no_rope_layers", fmt::format("must be {} numbers, one for each layer", layers));
  std::vector<bool> turns;
  for (int l = 0; l < layers; ++l)
    turns.push_back(given.empty() ? (l + 1) % interval != 0 : given[size_t(l)] != 0);
  return turns;
}

std::vector<bool> read_sparse(const Config& config, int layers) {
  const int step = config.optional_int("interleave_moe_layer_step", 1, 1, kMaxLayers);
  const std::vector<double> given = config.optional_numbers("moe_layers", 0, layers - 1);
  std::vector<bool> sparse;
  for (int l = 0; l < layers; ++l)
    sparse.push_back(config.has("moe_layers") ? std::ranges::find(given, double(l)) != given.end()
                                              : (l + 1) % step == 0);
  return sparse;
}

// The positions of a chunk, if a layer has chunks. Without layer_types, layers that turn have them.
int read_chunk(const Config& config, const std::vector<bool>& turns) {
  const std::vector<std::string> types = config.optional_strings("layer_types");
  bool any = types.empty() && std::ranges::find(turns, true) != turns.end();
  if (!types.empty() && types.size() != turns.size())
    config.reject("layer_types", fmt::format("must be {} names, one for each layer", turns.size()));
  for (const std::string& type : types) {
    if (type != "chunked_attention" && type != "full_attention")
      config.refuse("layer_types", "layers may be full_attention or chunked_attention");
    any |= type == "chunked_attention";
  }
  if (any && config.is_null("attention_chunk_size"))
    config.reject("attention_chunk_size", "must be a number where layers have chunks");
  return any ? config.optional_int("attention_chunk_size", 8192, 1, kMaxPositions) : 0;
}

}  // namespace

Llama4Config read_llama4_config(const Config& config) {
  refuse_foreign(config, "Llama4", {"num_local_experts"});
  Llama4Config c{read_decoder_config(config, {.sizes = {202048, 5120, 8192, 48, 40, 131072},
                                              .num_key_value_heads = 8,
                                              .head_dim = 128,
                                              .eps = 1e-5})};
  RopePlace place = place_of(c);
  place.theta = 500'000.0;
  c.rope = read_rope(config, place);
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.dense_intermediate_size = config.optional_int("intermediate_size_mlp", 16384, 1, kMaxWidth);
  c.experts = read_experts(config, {.count = 16, .taken = 1});
  if (c.experts.taken != 1)
    config.refuse("num_experts_per_tok", "a token may take one expert, whose input its score scales");
  c.turns = read_turns(config, c.num_hidden_layers);
  c.sparse = read_sparse(config, c.num_hidden_layers);
  c.chunk = read_chunk(config, c.turns);
  if (c.chunk > 0) c.rope.max_positions = std::min(c.rope.max_positions, c.chunk);
  c.qk_norm = config.optional_bool("use_qk_norm", true);
  c.floor_scale = config.optional_int("floor_scale", 8192, 1, kMaxPositions);
  const double scale = config.optional_number("attn_scale", 0.1, -1e6, 1e6);
  if (config.optional_bool("attn_temperature_tuning", true)) c.attn_scale = scale;
  return c;
}

}  // namespace heddle
