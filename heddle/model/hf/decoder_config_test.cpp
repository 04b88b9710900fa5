// The families that descend from Llama: keys that a file may leave out, and keys that are refused.
#include <cmath>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/model/hf/deepseek_config.h"
#include "heddle/model/hf/gemma_config.h"
#include "heddle/model/hf/glm_config.h"
#include "heddle/model/hf/mistral_config.h"
#include "heddle/model/hf/qwen_config.h"

namespace heddle {
namespace {

// A configuration with one more key. The key comes last and must not be one of these.
Config config(const std::string& more, int heads = 32) {
  return Config::parse(R"({"vocab_size":131,"hidden_size":640,"intermediate_size":77,"num_hidden_layers":4,
             "max_position_embeddings":128,"num_attention_heads":)" +
                           std::to_string(heads) + (more.empty() ? "" : "," + more) + "}",
                       "c");
}

template <class Read>
void expect_refused(Read read, const std::string& more, const std::string& part) {
  try {
    read(config(more));
    ADD_FAILURE() << more << " was accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << more << " -> " << error.what();
  }
}

TEST(MistralConfig, TakesTheDefaultsOfTransformers) {
  MistralConfig c = read_mistral_config(config(""));
  EXPECT_EQ(c.num_key_value_heads, 8);
  EXPECT_EQ(c.head_dim, 20);
  EXPECT_EQ(c.sliding_window, 4096);
  EXPECT_FALSE(c.tie_word_embeddings);
  c = read_mistral_config(config(R"("num_key_value_heads":null,"sliding_window":null,"head_dim":null)"));
  EXPECT_EQ(c.num_key_value_heads, 32);
  EXPECT_EQ(c.sliding_window, 0);
  expect_refused(read_mistral_config, R"("sliding_window":0)",
                 "sliding_window = 0: must be a whole number from 1");
  expect_refused(read_mistral_config, R"("layer_types":["full_attention"])",
                 "layer_types = [\"full_attention\"]");
  expect_refused(read_mistral_config, R"("architectures":["Ministral3ForCausalLM"])", "architectures = [");
  expect_refused(read_mistral_config, R"("attn_logit_softcapping":3)",
                 "attn_logit_softcapping = 3: not supported");
}

TEST(QwenConfig, TakesTheDefaultsOfTransformers) {
  QwenConfig c = read_qwen2_config(config(R"("sliding_window":9)"));
  EXPECT_EQ(c.num_key_value_heads, 32);
  EXPECT_EQ(c.head_dim, 20);
  EXPECT_EQ(c.windows, (std::vector<int>{0, 0, 0, 0}));  // use_sliding_window is false
  c = read_qwen2_config(config(R"("use_sliding_window":true,"max_window_layers":3,"sliding_window":9)"));
  EXPECT_EQ(c.windows, (std::vector<int>{0, 0, 0, 9}));
  c = read_qwen2_config(config(R"("use_sliding_window":true)"));  // its first 28 layers see all
  EXPECT_EQ(c.windows, (std::vector<int>{0, 0, 0, 0}));
  c = read_qwen3_config(
      config(R"("use_sliding_window":true,"sliding_window":9,"layer_types":["full_attention",
                                 "sliding_attention","full_attention","sliding_attention"])"));
  EXPECT_EQ(c.windows, (std::vector<int>{0, 9, 0, 9}));
  EXPECT_EQ(c.head_dim, 128);
  EXPECT_FALSE(c.attention_bias);
  expect_refused(read_qwen2_config, R"("layer_types":["full_attention"])", "must be 4 names");
  expect_refused(read_qwen2_config, R"("layer_types":["full_attention","full_attention","full_attention",
                                        "chunked_attention"])",
                 "not supported; layers may be full_attention or sliding_attention");
  expect_refused(read_qwen3_config, R"("layer_types":["full_attention","full_attention","full_attention",
                                        "sliding_attention"])",
                 "there must be a sliding_window in use");
}

TEST(GemmaConfig, TakesTheDefaultsOfTransformers) {
  GemmaConfig c = read_gemma2_config(config(""));
  EXPECT_EQ(c.num_key_value_heads, 4);
  EXPECT_EQ(c.head_dim, 256);
  EXPECT_EQ(c.hidden_act, HiddenAct::kGeluTanh);
  EXPECT_TRUE(c.tie_word_embeddings);
  EXPECT_EQ(c.windows, (std::vector<int>{4096, 0, 4096, 0}));
  EXPECT_EQ(c.query_pre_attn_scalar, 256.0);
  EXPECT_EQ(c.attn_logit_softcapping, 50.0);
  EXPECT_EQ(c.final_logit_softcapping, 30.0);
  c = read_gemma2_config(config(R"("attn_logit_softcapping":null,"final_logit_softcapping":null)"));
  EXPECT_EQ(c.attn_logit_softcapping, 0.0);
  EXPECT_EQ(c.final_logit_softcapping, 0.0);

  c = read_gemma3_config(config(R"("sliding_window":512,"sliding_window_pattern":3)"));
  EXPECT_EQ(c.windows, (std::vector<int>{512, 512, 0, 512}));
  EXPECT_EQ(c.final_logit_softcapping, 0.0);
  EXPECT_EQ(c.rope.theta, 1e6);
  EXPECT_EQ(c.local_rope.theta, 1e4);
  c = read_gemma3_config(config(R"("rope_theta":5.0,"rope_local_base_freq":7.0)"));
  EXPECT_EQ(c.rope.theta, 5.0);
  EXPECT_EQ(c.local_rope.theta, 7.0);
}

TEST(GemmaConfig, RefusesByNameAndValue) {
  expect_refused(read_gemma3_config, R"("attn_logit_softcapping":50.0)",
                 "attn_logit_softcapping = 50.0: not supported; it may be absent");
  for (auto read : {read_gemma2_config, read_gemma3_config}) {
    expect_refused(read, R"("use_bidirectional_attention":true)", "use_bidirectional_attention = true");
    expect_refused(read, R"("sliding_window":null)", "sliding_window = null: must be a number");
    expect_refused(read, R"("final_logit_softcapping":0)", "final_logit_softcapping = 0: must be a number");
    expect_refused(read, R"("query_pre_attn_scalar":0)", "query_pre_attn_scalar = 0: must be a number");
    expect_refused(read, R"("hidden_activation":"relu")", "hidden_activation = \"relu\": not supported");
    expect_refused(read, R"("num_key_value_heads":5)", "num_key_value_heads = 5: must divide");
  }
}

TEST(DeepseekConfig, TakesTheDefaultsOfTransformers) {
  const std::string dense = R"("first_k_dense_replace":4)";
  DeepseekConfig c = read_deepseek_v2_config(config(dense));
  EXPECT_EQ(c.q_lora_rank, 1536);
  EXPECT_EQ(c.kv_lora_rank, 512);
  EXPECT_EQ(c.qk_nope_head_dim, 128);
  EXPECT_EQ(c.qk_rope_head_dim, 64);
  EXPECT_EQ(c.v_head_dim, 128);
  EXPECT_TRUE(c.rope_interleave);
  EXPECT_DOUBLE_EQ(c.score_scale, 1 / std::sqrt(192.0));
  c = read_deepseek_v3_config(config(dense + R"(,"q_lora_rank":null,"rope_interleave":false,"head_dim":98)"));
  EXPECT_EQ(c.q_lora_rank, 0);
  EXPECT_FALSE(c.rope_interleave);
  EXPECT_EQ(c.head_dim, 64);
}

TEST(DeepseekConfig, ScalesScoresAsYarnAsks) {
  const auto with = [](const std::string& more) {
    return config(R"("first_k_dense_replace":4,"rope_scaling":{"type":"yarn","factor":40,
                     "original_max_position_embeddings":16)" +
                  more + "}");
  };
  const double factor = 0.1 * 0.7 * std::log(40.0) + 1, plain = 1 / std::sqrt(192.0);
  DeepseekConfig c = read_deepseek_v3_config(with(R"(,"mscale":0.7,"mscale_all_dim":0.7)"));
  EXPECT_DOUBLE_EQ(c.score_scale, plain * factor * factor);
  EXPECT_DOUBLE_EQ(c.rope.attention_factor, 1);
  c = read_deepseek_v3_config(with(""));
  EXPECT_DOUBLE_EQ(c.score_scale, plain);
  EXPECT_DOUBLE_EQ(c.rope.attention_factor, 0.1 * std::log(40.0) + 1);
}

TEST(DeepseekConfig, ReadsExperts) {
  DeepseekConfig c = read_deepseek_v3_config(config(R"("first_k_dense_replace":1)"));
  EXPECT_EQ(c.experts.n_routed_experts, 256);
  EXPECT_EQ(c.experts.num_experts_per_tok, 8);
  EXPECT_EQ(c.experts.n_group, 8);
  EXPECT_EQ(c.experts.topk_group, 4);
  EXPECT_DOUBLE_EQ(c.experts.routed_scaling_factor, 2.5);
  EXPECT_TRUE(c.experts.norm_topk_prob);
  EXPECT_TRUE(c.experts.scores_by_sigmoid);
  const std::string groups = R"("num_experts_per_tok":6,"n_group":8,"topk_group":3)";
  c = read_deepseek_v2_config(config(groups));  // greedy ignores groups
  EXPECT_EQ(c.experts.n_group, 1);
  c = read_deepseek_v2_config(config(groups + R"(,"topk_method":"group_limited_greedy")"));
  EXPECT_EQ(c.experts.n_group, 8);
  EXPECT_EQ(c.experts.topk_group, 3);
  EXPECT_FALSE(c.experts.scores_by_sigmoid);
  expect_refused(read_deepseek_v2_config, R"("num_experts_per_tok":6,"norm_topk_prob":true)",
                 "norm_topk_prob = true: not supported");
  expect_refused(read_deepseek_v2_config, R"("first_k_dense_replace":0)", "num_experts_per_tok");
  expect_refused(read_deepseek_v3_config, R"("scoring_func":"softmax")", "scoring_func = \"softmax\"");
  expect_refused(read_deepseek_v3_config, R"("num_experts_per_tok":2,"n_routed_experts":8,"n_group":8)",
                 "groups of one expert");
}

TEST(ExpertConfig, TakesTheDefaultsOfTransformers) {
  const MixtralConfig mixtral = read_mixtral_config(config(""));
  EXPECT_EQ(mixtral.num_local_experts, 8);
  EXPECT_EQ(mixtral.num_experts_per_tok, 2);
  EXPECT_EQ(mixtral.sliding_window, 0);
  QwenMoeConfig qwen = read_qwen3_moe_config(config(""));
  EXPECT_EQ(qwen.num_experts, 128);
  EXPECT_EQ(qwen.num_experts_per_tok, 8);
  EXPECT_EQ(qwen.moe_intermediate_size, 768);
  EXPECT_FALSE(qwen.norm_topk_prob);
  EXPECT_EQ(qwen.sparse, (std::vector<bool>{true, true, true, true}));
  qwen = read_qwen3_moe_config(
      config(R"("decoder_sparse_step":2,"mlp_only_layers":[3],"num_local_experts":16,"num_experts":16)"));
  EXPECT_EQ(qwen.sparse, (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(qwen.num_experts, 16);
}

TEST(ExpertConfig, RefusesByNameAndValue) {
  expect_refused(read_mixtral_config, R"("num_experts_per_tok":9)",
                 "num_experts_per_tok = 9: must be a whole number from 1 to 8");
  expect_refused(read_mixtral_config, R"("num_local_experts":0)",
                 "num_local_experts = 0: must be a whole number");
  expect_refused(read_qwen3_moe_config, R"("num_local_experts":8,"num_experts":9)",
                 "num_experts = 9: must be num_local_experts, 8");
  expect_refused(read_qwen3_moe_config, R"("layer_types":["full_attention"])", "layer_types");
}

// A default is held to the same limits as a value of the file.
TEST(DecoderConfig, RefusesAnAbsentKeyWhoseDefaultDoesNotFit) {
  expect_refused(read_glm4_moe_config, R"("n_routed_experts":12,"n_group":4,"topk_group":2)",
                 "num_experts_per_tok = absent: means 8; must be a whole number from 1 to 6");
  expect_refused(read_qwen2_moe_config, R"("num_experts":3)", "num_experts_per_tok = absent: means 4");
}

TEST(DeepseekConfig, RefusesByNameAndValue) {
  expect_refused(read_deepseek_v3_config, R"("n_routed_experts":12,"n_group":4,"topk_group":2)",
                 "num_experts_per_tok = absent: means 8; must be a whole number from 1 to 6");
  for (auto read : {read_deepseek_v2_config, read_deepseek_v3_config}) {
    expect_refused(read, R"("num_experts_per_tok":2,"moe_layer_freq":2)",
                   "moe_layer_freq = 2: not supported");
    expect_refused(read, R"("num_experts_per_tok":2,"n_group":7)",
                   "n_group = 7: must divide n_routed_experts");
    expect_refused(read,
                   R"("first_k_dense_replace":0,"num_experts_per_tok":2,"n_routed_experts":8,"n_group":2,
                             "topk_group":3)",
                   "topk_group = 3: must be at most n_group");
    expect_refused(read, R"("first_k_dense_replace":0,"n_routed_experts":8,"n_group":4,"topk_group":1,
                             "num_experts_per_tok":3)",
                   "num_experts_per_tok = 3: must be a whole number from 1 to 2");
    expect_refused(read, R"("num_key_value_heads":8)",
                   "num_key_value_heads = 8: must be num_attention_heads");
    expect_refused(read, R"("qk_rope_head_dim":7)", "qk_rope_head_dim = 7: must be even");
    expect_refused(read, R"("quantization_config":{"quant_method":"hqq"})", "quantization_config = ");
  }
}

}  // namespace
}  // namespace heddle
