// Any text is either refused with an Error, or gives configurations whose sizes are within their limits.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/base/invariant.h"
#include "heddle/model/hf/deepseek_config.h"
#include "heddle/model/hf/gemma4_config.h"
#include "heddle/model/hf/gemma_config.h"
#include "heddle/model/hf/glm_config.h"
#include "heddle/model/hf/gpt2_config.h"
#include "heddle/model/hf/gpt_oss_config.h"
#include "heddle/model/hf/granite_config.h"
#include "heddle/model/hf/layer_norm_config.h"
#include "heddle/model/hf/lfm2_config.h"
#include "heddle/model/hf/llama4_config.h"
#include "heddle/model/hf/llama_config.h"
#include "heddle/model/hf/llama_kin_config.h"
#include "heddle/model/hf/mamba_hybrid_config.h"
#include "heddle/model/hf/mistral_config.h"
#include "heddle/model/hf/olmo_config.h"
#include "heddle/model/hf/qwen_hybrid_config.h"

namespace {

using heddle::Config;

// A bad file may end in an Error, except one that says that heddle itself is broken.
template <class Action>
void run(Action action) {
  try {
    action();
  } catch (const heddle::Error& error) {
    if (error.code() == heddle::ErrorCode::kInternal) throw;
  }
}

void check_rope(const heddle::RopeConfig& rope, const heddle::DecoderConfig& c, int head_dim) {
  HEDDLE_CHECK(rope.theta > 0 && rope.low_freq_factor < rope.high_freq_factor && rope.factor > 0);
  HEDDLE_CHECK(rope.max_positions > 0 && rope.max_positions <= c.max_position_embeddings);
  HEDDLE_CHECK(rope.rotary_dim > 0 && rope.rotary_dim % 2 == 0 && rope.rotary_dim <= head_dim);
  HEDDLE_CHECK(rope.type != heddle::RopeType::kLongrope ||
               (int(rope.short_factor.size()) == rope.rotary_dim / 2 &&
                rope.long_factor.size() == rope.short_factor.size()));
  HEDDLE_CHECK(rope.short_positions() > 0 && rope.short_positions() <= rope.max_positions);
}

void check_heads(const heddle::DecoderConfig& c, int kv_heads, int head_dim) {
  HEDDLE_CHECK(kv_heads > 0 && c.num_attention_heads % kv_heads == 0 && head_dim % 2 == 0 && head_dim > 0);
}

void check_decoder(const heddle::DecoderConfig& c) {
  check_heads(c, c.num_key_value_heads, c.head_dim);
  check_rope(c.rope, c, c.head_dim);
}

void check_windows(const std::vector<int>& windows, const heddle::DecoderConfig& c) {
  HEDDLE_CHECK(int(windows.size()) == c.num_hidden_layers);
  for (int window : windows) HEDDLE_CHECK(window >= 0);
}

void read_llama(const Config& config) {
  check_decoder(heddle::read_llama_config(config));
}

void read_mistral(const Config& config) {
  const auto c = heddle::read_mistral_config(config);
  check_decoder(c);
  HEDDLE_CHECK(c.sliding_window >= 0);
}

void check_experts(int taken, int count) {
  HEDDLE_CHECK(0 < taken && taken <= count);
}

void check_experts(const heddle::GroupedExperts& e) {
  HEDDLE_CHECK(e.n_group > 0 && e.topk_group <= e.n_group && e.n_routed_experts % e.n_group == 0);
  check_experts(e.num_experts_per_tok, e.n_routed_experts / e.n_group * e.topk_group);
}

template <class Read>
void read_decoder(const Config& config, Read read) {
  const auto c = read(config);
  check_decoder(c);
  if (!c.windows.empty()) check_windows(c.windows, c);
}

template <class Read>
void read_mixture(const Config& config, Read read) {
  const auto c = read(config);
  check_decoder(c);
  if constexpr (requires { c.experts.n_group; })
    check_experts(c.experts);
  else if constexpr (requires { c.experts; })
    check_experts(c.experts.taken, c.experts.count);
  else if constexpr (requires { c.num_local_experts; })
    check_experts(c.num_experts_per_tok, c.num_local_experts);
  else
    check_experts(c.num_experts_per_tok, c.num_experts);
}

template <class Read>
void read_gemma(const Config& config, Read read) {
  const auto c = read(config);
  check_decoder(c);
  check_windows(c.windows, c);
  HEDDLE_CHECK(c.query_pre_attn_scalar > 0 && c.attn_logit_softcapping >= 0 &&
               c.final_logit_softcapping >= 0);
  if (c.local_rope.max_positions > 0) check_rope(c.local_rope, c, c.head_dim);
}

void read_gemma4(const Config& config) {
  const auto c = heddle::read_gemma4_config(config);
  check_heads(c, c.num_key_value_heads, c.head_dim);
  check_heads(c, c.global_kv_heads, c.global_head_dim);
  check_rope(c.local_rope, c, c.head_dim);
  check_rope(c.rope, c, c.global_head_dim);
  check_windows(c.windows, c);
}

void read_mixtral(const Config& config) {
  const auto c = heddle::read_mixtral_config(config);
  check_decoder(c);
  check_experts(c.num_experts_per_tok, c.num_local_experts);
}

void read_phimoe(const Config& config) {
  const auto c = heddle::read_phimoe_config(config);
  check_decoder(c);
  check_experts(c.num_experts_per_tok, c.num_local_experts);
  HEDDLE_CHECK(c.router_threshold >= 0 && c.router_threshold <= 2);
}

void read_qwen3_moe(const Config& config) {
  const auto c = heddle::read_qwen3_moe_config(config);
  check_decoder(c);
  check_windows(c.windows, c);
  check_experts(c.num_experts_per_tok, c.num_experts);
  HEDDLE_CHECK(int(c.sparse.size()) == c.num_hidden_layers);
}

template <class Read>
void read_deepseek(const Config& config, Read read) {
  const auto c = read(config);
  check_decoder(c);
  HEDDLE_CHECK(c.kv_lora_rank > 0 && c.score_scale > 0);
  if (c.experts.first_k_dense_replace < c.num_hidden_layers) check_experts(c.experts);
}

void read_gpt2(const Config& config) {
  auto c = heddle::read_gpt2_config(config);
  HEDDLE_CHECK(c.n_embd % c.n_head == 0 && c.n_inner > 0 && c.attention_scale(c.n_layer - 1) > 0);
}

void check_mamba(const std::vector<bool>& attends, const heddle::Mamba2Config& c, int layers) {
  HEDDLE_CHECK(int(attends.size()) == layers);
  if (std::ranges::find(attends, false) == attends.end()) return;
  HEDDLE_CHECK(c.head_dim > 0 && c.inner() <= heddle::kMaxWidth && c.groups > 0 && c.state_dim > 0);
  HEDDLE_CHECK(c.least_step >= 0 && (c.most_step == 0 || c.most_step >= c.least_step));
  HEDDLE_CHECK(c.heads % c.groups == 0 && c.conv_columns() > c.inner() && c.conv_width > 0);
}

void read_granite_hybrid(const Config& config) {
  const auto c = heddle::read_granitemoehybrid_config(config);
  check_decoder(c);
  check_mamba(c.attends, c.mamba, c.num_hidden_layers);
  if (c.experts.count > 0) check_experts(c.experts.taken, c.experts.count);
}

void read_nemotron_h(const Config& config) {
  const auto c = heddle::read_nemotron_h_config(config);
  check_decoder(c);
  HEDDLE_CHECK(int(c.parts.size()) == c.num_hidden_layers);
  if (c.has(heddle::NemotronPart::kMamba)) check_mamba({false}, c.mamba, 1);
  if (!c.has(heddle::NemotronPart::kExperts)) return;
  check_experts(c.experts);
  HEDDLE_CHECK(c.shared_intermediate_size > 0 && c.latent_size >= 0);
}

void read_falcon_h1(const Config& config) {
  const auto c = heddle::read_falcon_h1_config(config);
  check_decoder(c);
  check_mamba({false}, c.mamba, 1);
}

void read_bamba(const Config& config) {
  const auto c = heddle::read_bamba_config(config);
  check_decoder(c);
  check_mamba(c.attends, c.mamba, c.num_hidden_layers);
}

void read_all(const Config& config) {
  run([&] { read_llama(config); });
  run([&] { read_gpt2(config); });
  run([&] { read_mistral(config); });
  run([&] { read_decoder(config, heddle::read_qwen2_config); });
  run([&] { read_decoder(config, heddle::read_qwen3_config); });
  run([&] { read_gemma(config, heddle::read_gemma2_config); });
  run([&] { read_gemma(config, heddle::read_gemma3_config); });
  run([&] { read_mixtral(config); });
  run([&] { read_phimoe(config); });
  run([&] { read_qwen3_moe(config); });
  run([&] { read_deepseek(config, heddle::read_deepseek_v2_config); });
  run([&] { read_deepseek(config, heddle::read_deepseek_v3_config); });
  run([&] { read_mixture(config, heddle::read_qwen2_moe_config); });
  run([&] { read_mixture(config, heddle::read_granitemoe_config); });
  run([&] { read_granite_hybrid(config); });
  run([&] { read_bamba(config); });
  run([&] { read_falcon_h1(config); });
  run([&] { read_nemotron_h(config); });
  run([&] { read_mixture(config, heddle::read_minimax_m2_config); });
  run([&] { read_mixture(config, heddle::read_olmoe_config); });
  run([&] { read_mixture(config, heddle::read_glm4_moe_config); });
  run([&] { read_mixture(config, heddle::read_qwen3_vl_moe_config); });
  run([&] { read_mixture(config, heddle::read_qwen3_next_config); });
  run([&] { read_decoder(config, heddle::read_lfm2_config); });
  run([&] { read_mixture(config, heddle::read_lfm2_moe_config); });
  run([&] { read_decoder(config, heddle::read_qwen3_5_config); });
  run([&] { read_mixture(config, heddle::read_qwen3_5_moe_config); });
  run([&] { read_mixture(config, heddle::read_dots1_config); });
  run([&] { read_mixture(config, heddle::read_exaone_moe_config); });
  run([&] { read_deepseek(config, heddle::read_glm4_moe_lite_config); });
  run([&] { read_deepseek(config, heddle::read_mistral4_config); });
  run([&] { read_mixture(config, heddle::read_gpt_oss_config); });
  const auto each = [&](auto... readers) { (run([&] { read_decoder(config, readers); }), ...); };
  each(heddle::read_gemma_config, heddle::read_phi3_config, heddle::read_smollm3_config,
       heddle::read_seed_oss_config, heddle::read_exaone4_config, heddle::read_hunyuan_config,
       heddle::read_glm_config, heddle::read_cwm_config, heddle::read_ernie4_5_config,
       heddle::read_qwen2_vl_config, heddle::read_qwen3_vl_config, heddle::read_ministral3_config,
       heddle::read_granite_config, heddle::read_olmo2_config, heddle::read_olmo3_config,
       heddle::read_glm4_config, heddle::read_cohere_config, heddle::read_cohere2_config,
       heddle::read_starcoder2_config, heddle::read_stablelm_config, heddle::read_arcee_config,
       heddle::read_nemotron_config, heddle::read_gpt_neox_config, heddle::read_phi_config,
       heddle::read_falcon_config, heddle::read_llama4_config);
  run([&] { read_gemma4(config); });
  run([&] { (void)config.dtype(); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  run([&] { read_all(Config::parse({reinterpret_cast<const char*>(data), size}, "fuzz")); });
  return 0;
}
