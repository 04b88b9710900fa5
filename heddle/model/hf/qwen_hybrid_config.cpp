#include "heddle/model/hf/qwen_hybrid_config.h"

#include <fmt/format.h>

namespace heddle {
namespace {

// Every fourth layer sees all positions, where a file says nothing.
std::vector<bool> read_linear_layers(const Config& config, int layers) {
  std::vector<bool> linear;
  if (!config.has("layer_types")) {
    const int interval = config.optional_int("full_attention_interval", 4, 1, kMaxLayers);
    for (int l = 0; l < layers; ++l) linear.push_back((l + 1) % interval != 0);
    return linear;
  }
  const std::vector<std::string> types = config.optional_strings("layer_types");
  if (types.size() != size_t(layers))
    config.reject("layer_types", fmt::format("must be {} names, one for each layer", layers));
  for (const std::string& type : types) {
    if (type != "linear_attention" && type != "full_attention")
      config.refuse("layer_types", "layers may be linear_attention or full_attention");
    linear.push_back(type == "linear_attention");
  }
  return linear;
}

QwenHybridConfig read_hybrid(const Config& config, const DecoderDefaults& defaults, bool has_sections) {
  config.refuse_unless("attention_bias");
  QwenHybridConfig c;
  static_cast<DecoderConfig&>(c) = read_decoder_config(config, defaults);
  if (c.hidden_act != HiddenAct::kSilu) config.refuse("hidden_act", "linear attention has silu");
  RopePlace place = place_of(c);
  place.partial = 0.25, place.has_sections = has_sections;
  c.rope = read_rope(config, place);
  c.linear = read_linear_layers(config, c.num_hidden_layers);
  c.linear_conv_kernel_dim = config.optional_int("linear_conv_kernel_dim", 4, 1, 64);
  c.linear_num_key_heads = config.optional_int("linear_num_key_heads", 16, 1, kMaxHeads);
  c.linear_num_value_heads = config.optional_int("linear_num_value_heads", 32, 1, kMaxHeads);
  if (c.linear_num_value_heads % c.linear_num_key_heads != 0)
    config.reject("linear_num_value_heads", "must be a multiple of linear_num_key_heads");
  c.linear_key_head_dim = config.optional_int("linear_key_head_dim", 128, 1, kMaxHeadDim);
  c.linear_value_head_dim = config.optional_int("linear_value_head_dim", 128, 1, kMaxHeadDim);
  c.sparse.assign(size_t(c.num_hidden_layers), false);
  return c;
}

void read_shared_expert(const Config& config, QwenHybridConfig& c) {
  c.shared_expert_intermediate_size =
      config.optional_int("shared_expert_intermediate_size", 512, 1, kMaxWidth);
}

}  // namespace

QwenHybridConfig read_qwen3_next_config(const Config& config) {
  refuse_foreign(config, "Qwen3Next");
  QwenHybridConfig c = read_hybrid(
      config, {.sizes = {151936, 2048, 5632, 48, 16, 32768}, .num_key_value_heads = 2, .head_dim = 256},
      false);
  c.sparse.clear();
  read_qwen_mixture(config, {.count = 512, .taken = 10}, 512, c);
  c.norm_topk_prob = config.optional_bool("norm_topk_prob", true);
  read_shared_expert(config, c);
  c.by_key_heads = true;
  return c;
}

QwenHybridConfig read_qwen3_5_config(const Config& config) {
  refuse_foreign(config, "Qwen3_5");
  return read_hybrid(
      config, {.sizes = {248320, 4096, 12288, 32, 16, 32768}, .num_key_value_heads = 4, .head_dim = 256},
      true);
}

QwenHybridConfig read_qwen3_5_moe_config(const Config& config) {
  refuse_foreign(config, "Qwen3_5Moe");
  QwenHybridConfig c = read_hybrid(
      config, {.sizes = {248320, 2048, 512, 40, 16, 32768}, .num_key_value_heads = 2, .head_dim = 256}, true);
  c.moe_intermediate_size = config.optional_int("moe_intermediate_size", 512, 1, kMaxWidth);
  const Experts experts = read_experts(config, {.count = 256, .taken = 8});
  c.num_experts = experts.count, c.num_experts_per_tok = experts.taken;
  c.norm_topk_prob = true;
  c.sparse.assign(size_t(c.num_hidden_layers), true);
  read_shared_expert(config, c);
  return c;
}

}  // namespace heddle
