#include "heddle/model/hf/mamba_hybrid_config.h"

#include <optional>

#include <fmt/format.h>

namespace heddle {
namespace {

std::optional<NemotronPart> nemotron_part(const std::string& name) {
  if (name == "M" || name == "mamba" || name == "linear_attention") return NemotronPart::kMamba;
  if (name == "*" || name == "attention" || name == "full_attention") return NemotronPart::kAttention;
  if (name == "-" || name == "mlp") return NemotronPart::kMlp;
  if (name == "E" || name == "moe") return NemotronPart::kExperts;
  return {};
}

// A list of names, or a pattern with a letter for each layer. Their number is that of the layers.
std::vector<NemotronPart> read_nemotron_parts(const Config& config) {
  const char* key = config.has("layers_block_type") ? "layers_block_type" : "layer_types";
  std::vector<std::string> names = config.optional_strings(key);
  if (!config.has(key) && config.has("hybrid_override_pattern")) {
    key = "hybrid_override_pattern";
    for (const char letter : config.required_string(key)) names.emplace_back(1, letter);
  } else if (!config.has(key)) {
    names = {"mamba", "moe", "attention", "mlp"};
  }
  if (names.empty() || names.size() > size_t(kMaxLayers))
    config.reject(key, fmt::format("must name 1 to {} layers", kMaxLayers));
  std::vector<NemotronPart> parts;
  for (const std::string& name : names) {
    const auto part = nemotron_part(name);
    if (!part) config.refuse(key, "layers may be mamba (M), attention (*), mlp (-) or moe (E)");
    parts.push_back(*part);
  }
  return parts;
}

// A key under its own name, or under that of other families, which counts first.
const char* named(const Config& config, const char* other, const char* own) {
  return config.has(other) ? other : own;
}

Mamba2Config read_nemotron_mamba(const Config& config) {
  if (!config.is_one_of("mamba_hidden_act", {R"("silu")", R"("swish")"}))
    config.refuse("mamba_hidden_act", "layers of Mamba have silu");
  Mamba2Config c;
  c.heads = config.optional_int("mamba_num_heads", 128, 1, kMaxHeads);
  c.head_dim = config.optional_int("mamba_head_dim", 64, 1, kMaxWidth / c.heads);
  c.groups = config.optional_int(named(config, "mamba_n_groups", "n_groups"), 8, 1, c.heads);
  if (c.heads % c.groups != 0) config.reject("n_groups", "must divide mamba_num_heads");
  c.state_dim = config.optional_int("ssm_state_size", 128, 1, kMaxHeadDim);
  c.conv_width = config.optional_int(named(config, "mamba_d_conv", "conv_kernel"), 4, 1, 64);
  c.conv_bias = config.optional_bool(named(config, "mamba_conv_bias", "use_conv_bias"), true);
  c.in_bias = c.out_bias = config.optional_bool("use_bias", false);
  c.least_step = config.optional_number(named(config, "mamba_dt_min", "time_step_min"), 0.001, 0.0, 1e6);
  return c;
}

double read_multiplier(const Config& config, const char* key) {
  return config.optional_number(key, 1.0, -1e6, 1e6);
}

// So many multipliers; 1 each where the file has none.
std::vector<double> read_multipliers(const Config& config, const char* key, size_t count) {
  if (!config.has(key)) return std::vector<double>(count, 1.0);
  std::vector<double> numbers = config.optional_numbers(key, -1e6, 1e6);
  if (numbers.size() != count) config.reject(key, fmt::format("must be {} numbers", count));
  return numbers;
}

}  // namespace

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

FalconH1Config read_falcon_h1_config(const Config& config) {
  refuse_foreign(config, "FalconH1");
  FalconH1Config c;
  static_cast<DecoderConfig&>(c) = read_decoder_config(
      config, {.sizes = {128000, 4096, 14336, 32, 32, 8192}, .num_key_value_heads = 8, .eps = 1e-5});
  c.rope = read_rope(config, c);
  c.attention_bias = config.optional_bool("attention_bias", false);
  c.mlp_bias = config.optional_bool("mlp_bias", false);
  const int inner =
      config.is_null("mamba_d_ssm") ? 0 : config.optional_int("mamba_d_ssm", 1024, 1, kMaxWidth);
  c.mamba = read_mamba2(config, c.hidden_size, inner);
  c.mamba.out_bias = config.optional_bool("projectors_bias", false);
  if (!config.optional_bool("mamba_rms_norm", false))
    c.mamba.norm = Mamba2Norm::kNone;
  else if (config.optional_bool("mamba_norm_before_gate", !config.is_null("mamba_norm_before_gate")))
    c.mamba.norm = Mamba2Norm::kBeforeGate;
  std::ranges::copy(read_multipliers(config, "ssm_multipliers", 5), c.mamba.multipliers.begin());
  const std::vector<double> mlp = read_multipliers(config, "mlp_multipliers", 2);
  c.gate_multiplier = mlp[0], c.down_multiplier = mlp[1];
  c.embedding_multiplier = read_multiplier(config, "embedding_multiplier");
  c.lm_head_multiplier = read_multiplier(config, "lm_head_multiplier");
  c.attention_in_multiplier = read_multiplier(config, "attention_in_multiplier");
  c.attention_out_multiplier = read_multiplier(config, "attention_out_multiplier");
  c.key_multiplier = read_multiplier(config, "key_multiplier");
  c.ssm_in_multiplier = read_multiplier(config, "ssm_in_multiplier");
  c.ssm_out_multiplier = read_multiplier(config, "ssm_out_multiplier");
  return c;
}

NemotronHConfig read_nemotron_h_config(const Config& config) {
  refuse_foreign(config, "NemotronH");
  NemotronHConfig c;
  static_cast<DecoderConfig&>(c) = read_decoder_config(config, {.sizes = {131072, 4096, 21504, 4, 32, 4096},
                                                                .num_key_value_heads = 8,
                                                                .head_dim = 128,
                                                                .hidden_act_key = "mlp_hidden_act",
                                                                .hidden_act = "relu2",
                                                                .eps_key = "layer_norm_epsilon",
                                                                .eps = 1e-5});
  c.mlp_bias = config.optional_bool("mlp_bias", false);
  c.rope.rotary_dim = c.head_dim, c.rope.max_positions = c.max_position_embeddings;  // no head turns
  c.parts = read_nemotron_parts(config);
  c.num_hidden_layers = int(c.parts.size());
  if (c.has(NemotronPart::kMamba)) c.mamba = read_nemotron_mamba(config);
  if (!c.has(NemotronPart::kExperts)) return c;
  read_grouped_experts(config,
                       {.n_routed_experts = 8,
                        .n_shared_experts = 1,
                        .num_experts_per_tok = 2,
                        .moe_intermediate_size = 7688,
                        .norm_topk_prob = true},
                       c.experts);
  c.shared_intermediate_size = config.optional_int("moe_shared_expert_intermediate_size", 7688, 1, kMaxWidth);
  if (config.has("moe_latent_size"))
    c.latent_size = config.optional_int("moe_latent_size", c.hidden_size, 1, kMaxWidth);
  return c;
}

}  // namespace heddle
