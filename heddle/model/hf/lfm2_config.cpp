#include "heddle/model/hf/lfm2_config.h"

#include <algorithm>

#include <fmt/format.h>

namespace heddle {
namespace {

// Without a list, the layers of full_attn_idxs have attention, or all layers.
std::vector<bool> read_convolutions(const Config& config, int layers) {
  std::vector<bool> convolves;
  if (!config.has("layer_types")) {
    const std::vector<double> attend = config.optional_numbers("full_attn_idxs", 0, kMaxLayers);
    const bool all = !config.has("full_attn_idxs");
    for (int l = 0; l < layers; ++l)
      convolves.push_back(!all && std::ranges::find(attend, double(l)) == attend.end());
    return convolves;
  }
  const std::vector<std::string> types = config.optional_strings("layer_types");
  if (types.size() != size_t(layers))
    config.reject("layer_types", fmt::format("must be {} names, one for each layer", layers));
  for (const std::string& type : types) {
    if (type != "conv" && type != "full_attention")
      config.refuse("layer_types", "layers may be conv or full_attention");
    convolves.push_back(type == "conv");
  }
  return convolves;
}

Lfm2Config read_lfm2(const Config& config, const DefaultSizes& sizes) {
  Lfm2Config c;
  static_cast<DecoderConfig&>(c) = read_decoder_config(config, {.sizes = sizes,
                                                                .num_key_value_heads = 8,
                                                                .tie_word_embeddings = true,
                                                                .eps_key = "norm_eps",
                                                                .eps = 1e-5});
  c.hidden_act = HiddenAct::kSilu;  // whatever the file says
  c.tie_word_embeddings = config.optional_bool("tie_embedding", c.tie_word_embeddings);
  RopePlace place = place_of(c);
  place.theta = 1'000'000.0;
  c.rope = read_rope(config, place);
  c.convolves = read_convolutions(config, c.num_hidden_layers);
  c.conv_width = config.optional_int("conv_L_cache", 3, 1, 64);
  c.conv_bias = config.optional_bool("conv_bias", false);
  return c;
}

// The width that its MLP has, of the one that a file names.
int adjusted(const Config& config, int width) {
  if (!config.optional_bool("block_auto_adjust_ff_dim", true)) return width;
  width = int(2.0 * width / 3);
  if (config.is_null("block_ffn_dim_multiplier")) return width;
  width = int(config.optional_number("block_ffn_dim_multiplier", 1.0, 0.0, 1e3) * width);
  const int unit = config.optional_int("block_multiple_of", 256, 1, kMaxWidth);
  const int64_t rounded = (int64_t(width) + unit - 1) / unit * unit;
  if (rounded < 1 || rounded > kMaxWidth)
    config.reject("intermediate_size", "must leave an MLP some columns");
  return int(rounded);
}

}  // namespace

Lfm2Config read_lfm2_config(const Config& config) {
  refuse_foreign(config, "Lfm2");
  Lfm2Config c = read_lfm2(config, {65536, 2560, 12288, 32, 32, 128'000});
  c.intermediate_size =
      adjusted(config, config.optional_int("block_ff_dim", c.intermediate_size, 1, kMaxWidth));
  return c;
}

Lfm2Config read_lfm2_moe_config(const Config& config) {
  refuse_foreign(config, "Lfm2Moe");
  if (!config.has("layer_types")) config.reject("layer_types", "must be there");
  Lfm2Config c = read_lfm2(config, {65536, 2048, 7168, 32, 32, 128'000});
  c.experts = read_experts(config, {.count = 32, .taken = 4});
  c.moe_intermediate_size = config.optional_int("moe_intermediate_size", 1792, 1, kMaxWidth);
  c.num_dense_layers = config.optional_int("num_dense_layers", 2, 0, kMaxLayers);
  c.use_expert_bias = config.optional_bool("use_expert_bias", true);
  c.norm_topk_prob = config.optional_bool("norm_topk_prob", true);
  c.routed_scaling_factor = config.optional_number("routed_scaling_factor", 1.0, 0.0, 1e6);
  return c;
}

}  // namespace heddle
