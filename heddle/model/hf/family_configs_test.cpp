// The families that differ from Llama by options: defaults of transformers, and what is refused.
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/model/hf/deepseek_config.h"
#include "heddle/model/hf/gemma4_config.h"
#include "heddle/model/hf/gemma_config.h"
#include "heddle/model/hf/glm_config.h"
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

namespace heddle {
namespace {

// A configuration with more keys. They come last and must not be among these.
Config family_config(const std::string& more = "") {
  return Config::parse(R"({"vocab_size":131,"hidden_size":640,"intermediate_size":77,"num_hidden_layers":4,
             "max_position_embeddings":128,"num_attention_heads":32)" +
                           (more.empty() ? "" : "," + more) + "}",
                       "c");
}

void expect_refused(const std::function<void()>& read, const std::string& part) {
  try {
    read();
    ADD_FAILURE() << part << " was accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

using Windows = std::vector<int>;

TEST(FamilyConfigs, GemmaMeansTheTanhFormOfGelu) {
  const DecoderConfig c = read_gemma_config(family_config(R"("hidden_act":"gelu","num_key_value_heads":1)"));
  EXPECT_EQ(c.hidden_act, HiddenAct::kGeluTanh);
  EXPECT_EQ(c.head_dim, 256);
  EXPECT_TRUE(c.tie_word_embeddings);
  EXPECT_EQ(read_gemma3_config(Config::parse(R"({"hidden_size":2560,"intermediate_size":10240,
      "num_hidden_layers":34,"sliding_window":1024})",
                                             "c"))
                .vocab_size,
            262208)
      << "files of models with images leave out what equals the default";
}

TEST(FamilyConfigs, Phi3HasItsOwnNamesForLongrope) {
  const std::string factors = R"("short_factor":[1,1,1,1,1,1,1],"long_factor":[2,2,2,2,2,2,2])";
  for (const std::string type : {"su", "yarn", "longrope"}) {
    const DecoderConfig c = read_phi3_config(
        family_config(fmt::format(R"("original_max_position_embeddings":64,"partial_rotary_factor":0.7,
                                  "rope_scaling":{{"type":"{}",{}}})",
                                  type, factors)));
    EXPECT_EQ(c.rope.type, RopeType::kLongrope);
    EXPECT_EQ(c.rope.rotary_dim, 14);
    EXPECT_EQ(c.rope.short_positions(), 64);
  }
  EXPECT_EQ(read_phi3_config(family_config()).windows, Windows({0, 0, 0, 0}));
}

TEST(FamilyConfigs, WindowsAndLayersThatTurnFollowTheirPatterns) {
  EXPECT_EQ(read_smollm3_config(family_config()).turns, std::vector<bool>({true, true, true, false}));
  EXPECT_EQ(read_smollm3_config(family_config(R"("no_rope_layers":[0,1,0,1])")).turns,
            std::vector<bool>({false, true, false, true}));
  EXPECT_EQ(read_smollm3_config(family_config(R"("use_sliding_window":true,"sliding_window":7)")).windows,
            Windows({0, 0, 0, 7}));
  expect_refused([] { read_smollm3_config(family_config(R"("no_rope_layers":[1])")); }, "must be 4 numbers");
  EXPECT_EQ(read_olmo3_config(family_config()).windows, Windows({4096, 4096, 4096, 0}));
  EXPECT_EQ(read_cohere2_config(family_config(R"("sliding_window_pattern":2)")).windows,
            Windows({4096, 0, 4096, 0}));
  const Exaone4Config exaone = read_exaone4_config(family_config(R"("sliding_window":9)"));
  EXPECT_EQ(exaone.windows, Windows({9, 9, 9, 0}));
  EXPECT_FALSE(exaone.turns_all);
  EXPECT_TRUE(read_exaone4_config(family_config(R"("sliding_window":null)")).turns_all);
  EXPECT_EQ(
      read_qwen2_moe_config(family_config(R"("use_sliding_window":true,"max_window_layers":3)")).windows,
      Windows({4096, 0, 4096, 0}));
  EXPECT_EQ(read_qwen2_moe_config(family_config(R"("sliding_window":0)")).windows, Windows({0, 0, 0, 0}));
  EXPECT_EQ(read_gpt_oss_config(family_config()).windows, Windows({128, 0, 128, 0}));
}

TEST(FamilyConfigs, OnlyAPartOfEachHeadTurns) {
  EXPECT_EQ(read_glm4_config(family_config(R"("head_dim":64)")).rope.rotary_dim, 32);
  EXPECT_EQ(read_phi_config(family_config()).rope.rotary_dim, 10);
  EXPECT_EQ(read_stablelm_config(family_config(R"("partial_rotary_factor":0.5)")).rope.rotary_dim, 10);
  expect_refused([] { read_stablelm_config(family_config()); }, "makes 5 of a head's 20 elements turn");
  const GptNeoxConfig neox = read_gpt_neox_config(family_config(R"("rotary_pct":0.4,"rotary_emb_base":500)"));
  EXPECT_EQ(neox.rope.rotary_dim, 8);
  EXPECT_EQ(neox.rope.theta, 500);
  EXPECT_EQ(neox.num_key_value_heads, 32);
  const Config odd =
      Config::parse(R"({"vocab_size":131,"hidden_size":36,"intermediate_size":77,"num_hidden_layers":4,
      "max_position_embeddings":128,"num_attention_heads":4,"head_dim":16})",
                    "c");
  expect_refused([&] { read_gpt_neox_config(odd); }, "hidden_size = 36: must be an even multiple");
  expect_refused([] { read_granite_config(family_config(R"("partial_rotary_factor":0.5)")); },
                 "partial_rotary_factor");
}

TEST(FamilyConfigs, FalconHasTwoArchitectures) {
  const FalconConfig old = read_falcon_config(family_config());
  EXPECT_EQ(old.num_key_value_heads, 1);
  EXPECT_EQ(old.intermediate_size, 2560);
  EXPECT_EQ(old.norms, 1);
  const FalconConfig grouped =
      read_falcon_config(family_config(R"("new_decoder_architecture":true,"num_kv_heads":8)"));
  EXPECT_EQ(grouped.num_key_value_heads, 8);
  EXPECT_EQ(grouped.norms, 2);
  EXPECT_TRUE(read_falcon_config(family_config(R"("alibi":true)")).alibi);
  const Config endless = Config::parse(R"({"vocab_size":131,"hidden_size":640,"num_hidden_layers":4,
      "max_position_embeddings":1000000000,"num_attention_heads":32,"alibi":true})",
                                       "c");
  expect_refused([&] { read_falcon_config(endless); }, "may be at most 2097152 for 32 heads");
}

TEST(FamilyConfigs, RopesThatDependOnTheFamily) {
  const DecoderConfig hunyuan =
      read_hunyuan_config(family_config(R"("rope_scaling":{"type":"dynamic","alpha":16,"factor":1.0})"));
  EXPECT_EQ(hunyuan.rope.type, RopeType::kDefault);
  EXPECT_NEAR(hunyuan.rope.theta, 10000 * std::pow(16, 20.0 / 18), 1e-6);
  const Ministral3Config ministral = read_ministral3_config(family_config(
      R"("head_dim":20,"rope_parameters":{"rope_type":"yarn","factor":4,"llama_4_scaling_beta":0.1,
                "original_max_position_embeddings":32})"));
  EXPECT_EQ(ministral.query_rope.query_beta, 0.1);
  EXPECT_EQ(ministral.rope.query_beta, 0);
}

TEST(FamilyConfigs, RefuseWhatTheyDoNotCompute) {
  EXPECT_EQ(read_olmo_config(family_config(R"("clip_qkv":8.0)")).clip_qkv, 8);
  EXPECT_EQ(read_olmoe_config(family_config(R"("clip_qkv":null)")).clip_qkv, 0);
  expect_refused([] { read_olmoe_config(family_config(R"("clip_qkv":0)")); }, "clip_qkv = 0");
  expect_refused([] { read_glm4_moe_config(family_config(R"("n_group":3,"num_key_value_heads":8)")); },
                 "n_group = 3");
  expect_refused(
      [] { read_gpt_oss_config(family_config(R"("quantization_config":{"quant_method":"awq"})")); },
      "quant_method = \"awq\"");
  EXPECT_EQ(
      read_gpt_oss_config(family_config(R"("quantization_config":{"quant_method":"mxfp4"})")).swiglu_limit,
      7);
  expect_refused([] { read_granitemoe_config(family_config(R"("num_experts_per_tok":9)")); },
                 "num_experts_per_tok");
}

// Keys whose lack means something else than in most families, or for which null means something else than their lack.
constexpr const char* kHead = R"("head_dim":20)";

TEST(FamilyConfigs, AKeyThatIsMissingHasTheDefaultOfTransformersClass) {
  const MixtralConfig mixtral = read_mixtral_config(family_config(kHead));
  EXPECT_EQ(mixtral.rope.theta, 1e6);
  EXPECT_EQ(mixtral.rms_norm_eps, 1e-5);
  EXPECT_EQ(read_mistral_config(family_config(kHead)).rope.theta, 1e4);
  const GptOssConfig oss = read_gpt_oss_config(family_config(kHead));
  EXPECT_EQ(oss.rope.type, RopeType::kYarn);
  EXPECT_EQ(oss.rope.factor, 32);
  EXPECT_EQ(oss.rope.theta, 150'000);
  EXPECT_FALSE(oss.rope.truncate);
  EXPECT_EQ(read_gpt_oss_config(family_config(R"("rope_parameters":{})")).rope.type, RopeType::kDefault);
  const Ministral3Config ministral = read_ministral3_config(family_config(kHead));
  EXPECT_EQ(ministral.rope.theta, 1e6);
  EXPECT_EQ(ministral.query_rope.query_beta, 0.1);
  EXPECT_EQ(ministral.rope.original_max_position_embeddings, 16384);
  const auto yarn = [](const char* truncate) {
    const std::string text = fmt::format(
        R"("rope_parameters":{{"rope_type":"yarn","factor":4,"original_max_position_embeddings":32{}}})",
        truncate);
    return read_llama_config(family_config(text)).rope;
  };
  EXPECT_TRUE(yarn("").truncate);
  EXPECT_FALSE(yarn(",\"truncate\":null").truncate);
}

TEST(FamilyConfigs, Granite4HasMambaWhereItDoesNotAttend) {
  const auto read = [](const std::string& more) { return read_granitemoehybrid_config(family_config(more)); };
  const std::string attention = R"("layer_types":["attention","full_attention","attention","attention"])";
  EXPECT_EQ(read(attention + R"(,"num_local_experts":0)").experts.count, 0);
  EXPECT_EQ(read(attention).experts.count, 8);
  EXPECT_FALSE(read(attention).turns);
  EXPECT_TRUE(read(attention + R"(,"position_embedding_type":"rope")").turns);
  const std::string heads = R"(,"mamba_n_heads":8)";
  const auto mixed =
      read(R"("layers_block_type":["mamba","attention","linear_attention","full_attention"])" + heads);
  EXPECT_EQ(mixed.attends, std::vector<bool>({false, true, false, true}));
  EXPECT_EQ(mixed.mamba.head_dim, 2 * mixed.hidden_size / 8);
  EXPECT_EQ(read(R"("layer_types":null)" + heads).attends, std::vector<bool>(4));
  expect_refused([&] { read(R"("layer_types":["attention"])"); }, "must be 4 names");
  expect_refused([&] { read(R"("layer_types":["attention","attention","mamba","rwkv"])"); },
                 "mamba or attention");
}

TEST(FamilyConfigs, BambaTurnsHalfOfEachHead) {
  const auto read = [](const std::string& more) {
    return read_bamba_config(family_config(R"("mamba_n_heads":8,"num_key_value_heads":4)" + more));
  };
  EXPECT_EQ(read("").rope.rotary_dim, 10);
  EXPECT_EQ(read("").attends, std::vector<bool>(4));
  EXPECT_EQ(read(R"(,"attn_layer_indices":[1,3,9])").attends, std::vector<bool>({false, true, false, true}));
  const std::string all = R"(,"rope_parameters":{"rope_type":"default","partial_rotary_factor":1.0})";
  EXPECT_EQ(read(all).rope.rotary_dim, 20);
  expect_refused([&] { read(R"(,"partial_rotary_factor":1.0)"); }, "partial_rotary_factor");
}

TEST(FamilyConfigs, NemotronHNamesThePartOfEachLayer) {
  const auto read = [](const std::string& more) { return read_nemotron_h_config(family_config(more)); };
  using enum NemotronPart;
  const std::vector all = {kMamba, kExperts, kAttention, kMlp};
  EXPECT_EQ(read("").parts, all);
  EXPECT_EQ(read(R"("layers_block_type":["mamba","moe","attention","mlp"])").parts, all);
  EXPECT_EQ(read(R"("layer_types":["linear_attention","moe","full_attention","mlp"])").parts, all);
  const auto pattern = read(R"("hybrid_override_pattern":"M*M-M","num_nextn_predict_layers":1)");
  EXPECT_EQ(pattern.parts, std::vector({kMamba, kAttention, kMamba, kMlp, kMamba}));
  EXPECT_EQ(pattern.num_hidden_layers, 5) << "whatever num_hidden_layers says";
  EXPECT_EQ(pattern.experts.n_routed_experts, 0);
  EXPECT_EQ(pattern.mamba.least_step, 0.001);
  EXPECT_EQ(read(R"("time_step_min":0.2,"mamba_dt_min":0.1,"conv_kernel":3)").mamba.least_step, 0.1);
  EXPECT_EQ(read(R"("moe_latent_size":7)").latent_size, 7);
  for (const auto& [more, part] : {std::pair{R"("hybrid_override_pattern":"MX")", "mamba (M)"},
                                   {R"("hybrid_override_pattern":"")", "must name 1 to"},
                                   {R"("layers_block_type":["conv"])", "mamba (M)"},
                                   {R"("mamba_num_heads":6,"n_groups":4)", "must divide mamba_num_heads"},
                                   {R"("mamba_hidden_act":"gelu")", "silu"}})
    expect_refused([&] { read(more); }, part);
}

TEST(FamilyConfigs, FalconH1HasMultipliersAndANormOrNone) {
  const auto read = [](const std::string& more) {
    return read_falcon_h1_config(family_config(R"("mamba_n_heads":8,"num_key_value_heads":4)" + more));
  };
  const auto plain = read("");
  EXPECT_EQ(plain.mamba.inner(), 1024);
  EXPECT_EQ(plain.mamba.norm, Mamba2Norm::kNone);
  EXPECT_EQ(plain.gate_multiplier, 1);
  EXPECT_EQ(read(R"(,"mamba_d_ssm":null)").mamba.inner(), 2 * 640);
  EXPECT_EQ(read(R"(,"mamba_d_ssm":72)").mamba.head_dim, 9);
  EXPECT_EQ(read(R"(,"mamba_rms_norm":true)").mamba.norm, Mamba2Norm::kBeforeGate);
  EXPECT_EQ(read(R"(,"mamba_rms_norm":true,"mamba_norm_before_gate":false)").mamba.norm,
            Mamba2Norm::kAfterGate);
  EXPECT_EQ(read(R"(,"mamba_rms_norm":true,"mamba_norm_before_gate":null)").mamba.norm,
            Mamba2Norm::kAfterGate);
  const auto scaled = read(R"(,"mlp_multipliers":[0.5,2],"ssm_multipliers":[1,2,3,4,5])");
  EXPECT_EQ(scaled.down_multiplier, 2);
  EXPECT_EQ(scaled.mamba.multipliers, (std::array<double, 5>{1, 2, 3, 4, 5}));
  expect_refused([&] { read(R"(,"mlp_multipliers":[0.5])"); }, "must be 2 numbers");
  expect_refused([&] { read(R"(,"ssm_multipliers":[1,2,3,4])"); }, "must be 5 numbers");
}

TEST(FamilyConfigs, HeadsOfMambaFitTheirLayer) {
  const auto read = [](const std::string& more) { return read_mamba2(family_config(more), 24); };
  const auto c = read(R"("mamba_n_heads":6,"mamba_n_groups":3,"mamba_d_head":8)");
  EXPECT_EQ(c.head_dim, 8);
  EXPECT_EQ(c.conv_columns(), 48 + 2 * 3 * 256);
  for (const char* fits : {R"("mamba_d_head":"auto")", R"("mamba_d_head":8)",
                           R"("time_step_limit":[0.0,Infinity])", R"("hidden_act":"swish")"})
    EXPECT_EQ(read(std::string(R"("mamba_n_heads":6,)") + fits).heads, 6) << fits;
  for (const auto& [more, part] :
       {std::pair{R"("mamba_n_heads":7)", "must divide the 48 columns"},
        {R"("mamba_n_heads":6,"mamba_d_head":9)", "must be 8"},
        {R"("mamba_n_heads":6,"mamba_n_groups":4)", "must divide mamba_n_heads"},
        {R"("mamba_n_heads":6,"mamba_n_groups":7)", "whole number from 1 to 6"},
        {R"("mamba_n_heads":6,"time_step_limit":[2.0,1.0])", "the least and the largest"},
        {R"("mamba_n_heads":6,"time_step_limit":[1.0])", "the least and the largest"},
        {R"("mamba_n_heads":6,"hidden_act":"gelu")", "silu"}})
    expect_refused([&] { read(more); }, part);
  expect_refused([] { read_mamba2(family_config(), kMaxWidth); }, "at most");
  EXPECT_EQ(read(R"("mamba_n_heads":6,"time_step_limit":[0.1,Infinity])").most_step, 0);
  EXPECT_EQ(read(R"("mamba_n_heads":6,"time_step_limit":[0.1,4.0])").most_step, 4);
}

TEST(FamilyConfigs, LayersWithExpertsAreThoseThatTheFileNames) {
  const auto glm = [](const std::string& types) {
    return read_glm4_moe_lite_config(family_config(R"("mlp_layer_types":)" + types))
        .experts.first_k_dense_replace;
  };
  EXPECT_EQ(glm("null"), 1);
  const Config odd =
      Config::parse(R"({"hidden_size":70,"num_attention_heads":10,"num_key_value_heads":10})", "c");
  EXPECT_NO_THROW(read_glm4_moe_lite_config(odd)) << "heads are not hidden_size / num_attention_heads wide";
  EXPECT_EQ(glm(R"(["dense","dense","dense","sparse"])"), 3);
  EXPECT_EQ(glm(R"(["sparse","sparse","sparse","sparse"])"), 0);
  expect_refused([&] { glm(R"(["dense","sparse"])"); }, "must be 4 names");
  expect_refused([&] { glm(R"(["dense","sparse","dense","sparse"])"); }, "\"dense\" for the first layers");
  expect_refused([] { read_glm4_moe_lite_config(family_config(R"("first_k_dense_replace":2)")); },
                 "first_k_dense_replace = 2: not supported");
  EXPECT_EQ(
      read_exaone_moe_config(family_config(R"("first_k_dense_replace":2)")).experts.first_k_dense_replace, 2);
  EXPECT_EQ(read_exaone_moe_config(family_config(R"("num_experts":12)")).experts.n_routed_experts, 12);
  using Sparse = std::vector<bool>;
  const auto ernie = [](const std::string& more) {
    return read_ernie4_5_config(family_config(R"("model_type":"ernie4_5_moe",)" + more)).sparse;
  };
  EXPECT_EQ(ernie(R"("moe_layer_interval":2)"), Sparse({false, true, false, true}));
  EXPECT_EQ(ernie(R"("moe_layer_start_index":0,"moe_layer_end_index":2)"), Sparse({true, true, true, false}));
}

TEST(FamilyConfigs, HunyuansLayersTakeEquallyManyExperts) {
  const auto read = [](const std::string& more) {
    return read_hunyuan_config(family_config(R"("model_type":"hunyuan_v1_moe","num_experts":8,)" + more))
        .experts;
  };
  EXPECT_EQ(read(R"("moe_topk":[3,3,3,3])").taken, 3);
  EXPECT_EQ(read(R"("moe_topk":2)").taken, 2);
  expect_refused([&] { read(R"("moe_topk":[3,2,3,3])"); }, "all layers may take equally many");
  expect_refused([&] { read(R"("moe_topk":9)"); }, "moe_topk");
}

TEST(FamilyConfigs, CwmSlidesInThreeOfFourLayers) {
  EXPECT_EQ(read_cwm_config(family_config(R"("sliding_window":9)")).windows, Windows({0, 9, 9, 9}));
  EXPECT_EQ(read_cwm_config(family_config()).rope.type, RopeType::kLlama3);
}

TEST(FamilyConfigs, MinimaxM2TurnsAPartOfEachHead) {
  const auto read = [](const std::string& more) { return read_minimax_m2_config(family_config(more)); };
  EXPECT_EQ(read(R"("head_dim":20,"rotary_dim":10)").rope.rotary_dim, 10);
  EXPECT_EQ(read(R"("head_dim":20)").rope.rotary_dim, 20);
  EXPECT_EQ(read(R"("head_dim":20)").rope.theta, 5e6);
  expect_refused([&] { read(R"("attn_type_list":[1,0])"); }, "lightning attention");
  expect_refused([&] { read(R"("scoring_func":"softmax")"); }, "scoring_func");
}

TEST(FamilyConfigs, LayersOfQwensHybridsHaveTheKindThatTheFileNames) {
  using Layers = std::vector<bool>;
  const auto read = [](const std::string& more) { return read_qwen3_5_config(family_config(more)); };
  EXPECT_EQ(read("").linear, Layers({true, true, true, false}));
  EXPECT_EQ(read(R"("full_attention_interval":2)").linear, Layers({true, false, true, false}));
  const std::string types =
      R"("layer_types":["full_attention","linear_attention","linear_attention","full_attention"])";
  EXPECT_EQ(read(types).linear, Layers({false, true, true, false}));
  EXPECT_EQ(read(R"("head_dim":64)").rope.rotary_dim, 16) << "a quarter of a head turns";
  expect_refused([&] { read(R"("layer_types":["linear_attention"])"); }, "one for each layer");
  expect_refused([&] { read(R"("layer_types":["conv","conv","conv","conv"])"); }, "may be linear_attention");
  expect_refused([&] { read(R"("linear_num_key_heads":5)"); }, "linear_num_value_heads");
  expect_refused([&] { read(R"("attention_bias":true)"); }, "attention_bias");
  EXPECT_TRUE(read_qwen3_next_config(family_config()).norm_topk_prob);
}

TEST(FamilyConfigs, Lfm2AdjustsTheWidthOfItsMlp) {
  const auto read = [](const std::string& more) { return read_lfm2_config(family_config(more)); };
  EXPECT_EQ(read("").intermediate_size, 256);
  EXPECT_EQ(read(R"("block_multiple_of":8)").intermediate_size, 56) << "2/3 of 77, in eights";
  EXPECT_EQ(read(R"("block_auto_adjust_ff_dim":false)").intermediate_size, 77);
  EXPECT_EQ(read(R"("block_ffn_dim_multiplier":null)").intermediate_size, 51);
  EXPECT_EQ(read(R"("block_ff_dim":300,"block_multiple_of":1)").intermediate_size, 200);
  EXPECT_FALSE(read(R"("tie_embedding":false)").tie_word_embeddings);
  EXPECT_EQ(read(R"("full_attn_idxs":[2])").convolves, std::vector<bool>({true, true, false, true}));
  expect_refused([] { read_lfm2_moe_config(family_config()); }, "layer_types");
}

TEST(FamilyConfigs, Llama4SaysWhichLayersTurnAndHaveExpertsAndChunks) {
  const Llama4Config c =
      read_llama4_config(family_config(R"("num_key_value_heads":8,"interleave_moe_layer_step":2)"));
  EXPECT_EQ(c.turns, (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(c.sparse, (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(c.chunk, 8192);
  EXPECT_EQ(c.rope.max_positions, 128);
  const auto within = [](const char* keys) {
    return read_llama4_config(family_config(keys)).rope.max_positions;
  };
  EXPECT_EQ(within(R"("num_key_value_heads":8,"attention_chunk_size":64)"), 64);
  const Llama4Config other = read_llama4_config(
      family_config(R"("num_key_value_heads":8,"moe_layers":[],"no_rope_layers":[0,0,0,0],"attn_scale":0.5,
                       "attention_chunk_size":null,"attn_temperature_tuning":false)"));
  EXPECT_EQ(other.sparse, std::vector<bool>(4, false));
  EXPECT_EQ(other.chunk, 0);
  EXPECT_EQ(other.attn_scale, 0);
  for (const auto& [keys, part] :
       {std::pair{R"("attention_chunk_size":null)", "attention_chunk_size"},
        {R"("num_experts_per_tok":2)", "a token may take one expert"},
        {R"("no_rope_layers":[1,0])", "no_rope_layers"},
        {R"("layer_types":["full_attention"])", "layer_types"},
        {R"("layer_types":["full_attention","sliding_attention","full_attention","full_attention"])",
         "full_attention or chunked_attention"}})
    expect_refused(
        [&, keys = keys] {
          read_llama4_config(family_config(std::string(R"("num_key_value_heads":8,)") + keys));
        },
        part);
}

TEST(FamilyConfigs, Mistral4TurnsThePartOfAHeadThatItsRopeSays) {
  const std::string sizes = R"("qk_nope_head_dim":6,"qk_rope_head_dim":10,"rope_parameters":)";
  const std::string yarn =
      R"({"rope_type":"yarn","factor":8,"original_max_position_embeddings":16,"llama_4_scaling_beta":0.1)";
  const DeepseekConfig c = read_mistral4_config(family_config(sizes + yarn + "}"));
  EXPECT_EQ(c.rope.rotary_dim, 10);
  EXPECT_EQ(c.rope.query_beta, 0);
  EXPECT_EQ(c.query_rope.query_beta, 0.1);
  EXPECT_EQ(c.experts.scores_of_group, 2);
  expect_refused(
      [&] { read_mistral4_config(family_config(sizes + yarn + R"(,"partial_rotary_factor":0.5})")); },
      "qk_rope_head_dim");
}

TEST(FamilyConfigs, Gemma4HasOtherHeadsInLayersThatSeeAllPositions) {
  const Gemma4Config c = read_gemma4_config(family_config());
  EXPECT_EQ(c.windows, (Windows{512, 512, 512, 0})) << "the last one sees all, whatever the pattern";
  EXPECT_EQ(c.head_dim, 256);
  EXPECT_EQ(c.global_head_dim, 512);
  EXPECT_EQ(c.rope.type, RopeType::kProportional);
  EXPECT_EQ(c.rope.rotary_dim, 512);
  EXPECT_EQ(c.rope.turning_pairs, 64);
  EXPECT_EQ(c.local_rope.theta, 10'000.0);
  EXPECT_EQ(c.per_layer_input, 256);
  const std::string full =
      R"("layer_types":["full_attention","sliding_attention","full_attention","full_attention"])";
  const Gemma4Config published = read_gemma4_config(family_config(
      full + R"(,"global_head_dim":64,"num_global_key_value_heads":2,"attention_k_eq_v":true)"));
  const Gemma4Config saved = read_gemma4_config(
      family_config(full + R"(,"per_layer_config":{"0":{"head_dim":64,"num_key_value_heads":2},
        "2":{"head_dim":64,"num_key_value_heads":2},"3":{"head_dim":64,"num_key_value_heads":2}})"));
  EXPECT_EQ(published.global_kv_heads, 2);
  for (const auto& [one, other] : {std::pair{published.global_head_dim, saved.global_head_dim},
                                   {published.global_kv_heads, saved.global_kv_heads}})
    EXPECT_EQ(one, other);
  for (const auto& [keys, part] :
       {std::pair{R"("num_kv_shared_layers":1)", "no earlier layer of its kind"},
        {R"("enable_moe_block":true)", "num_experts"},
        {R"("enable_moe_block":true,"num_experts":4,"top_k_experts":5)", "top_k_experts"},
        {R"("use_bidirectional_attention":"all")", "use_bidirectional_attention"},
        {R"("vocab_size_per_layer_input":5)", "vocab_size_per_layer_input"},
        {R"("per_layer_config":{"0":{"head_dim":64}})", "layers with a window"},
        {R"("per_layer_config":{"3":{"sliding_window":64}})", "sliding_window"}})
    expect_refused([&, keys = keys] { read_gemma4_config(family_config(keys)); }, part);
}

}  // namespace
}  // namespace heddle
