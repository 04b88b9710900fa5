#include "heddle/model/hf/config.h"

#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/model/hf/gpt2_config.h"
#include "heddle/model/hf/llama_config.h"
#include "heddle/model/hf/quantisation.h"

namespace heddle {
namespace {

// Runs `action` and returns the message of its error, which must have `code`.
std::string message(ErrorCode code, const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

// A configuration of Llama with one more key. The key comes last and must not be one of these.
std::string llama(const std::string& more = "") {
  return R"({"model_type":"llama","architectures":["LlamaForCausalLM"],"vocab_size":131,"hidden_size":40,
             "intermediate_size":77,"num_hidden_layers":2,"num_attention_heads":5,
             "max_position_embeddings":128,"rms_norm_eps":1e-05)" +
         (more.empty() ? "" : "," + more) + "}";
}

std::string gpt2(const std::string& more = "") {
  return R"({"model_type":"gpt2","vocab_size":131,"n_positions":64,"n_embd":40,"n_layer":2,"n_head":5)" +
         (more.empty() ? "" : "," + more) + "}";
}

LlamaConfig read_llama(const std::string& more = "") {
  return read_llama_config(Config::parse(llama(more), "c"));
}
Gpt2Config read_gpt2(const std::string& more = "") {
  return read_gpt2_config(Config::parse(gpt2(more), "c"));
}

void expect_llama_fails(ErrorCode code, const std::string& more, const std::string& part) {
  std::string text = message(code, [&] { read_llama(more); });
  EXPECT_NE(text.find(part), std::string::npos) << more << " -> " << text;
}

constexpr auto kBad = ErrorCode::kIo;
constexpr auto kUnsupported = ErrorCode::kUnsupported;

TEST(LlamaConfig, TakesTheDefaultsOfTransformers) {
  LlamaConfig c = read_llama();
  EXPECT_EQ(c.num_key_value_heads, 5);
  EXPECT_EQ(c.head_dim, 8);
  EXPECT_EQ(c.hidden_act, HiddenAct::kSilu);
  EXPECT_FALSE(c.tie_word_embeddings || c.attention_bias || c.mlp_bias);
  EXPECT_EQ(c.rope.type, RopeType::kDefault);
  EXPECT_EQ(c.rope.theta, 10'000.0);
  EXPECT_EQ(c.rms_norm_eps, 1e-5);
}

TEST(LlamaConfig, NullIsAbsent) {
  LlamaConfig c = read_llama(R"("head_dim":null,"num_key_value_heads":null,"rope_scaling":null,
                                "quantization_config":null,"pretraining_tp":null)");
  EXPECT_EQ(c.head_dim, 8);
  EXPECT_EQ(c.num_key_value_heads, 5);
}

TEST(LlamaConfig, ReadsBothFormsOfRope) {
  const std::string scaling = R"("factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,
                                 "original_max_position_embeddings":32,"rope_type":"llama3")";
  for (const std::string& more :
       {R"("rope_theta":500000,"rope_scaling":{)" + scaling + "}",
        R"("rope_parameters":{"rope_theta":500000.0,)" + scaling + "}",
        R"("rope_theta":500000,"rope_parameters":{"type":"llama3",)" + scaling + "}",
        R"("rope_scaling":{},"rope_parameters":{"rope_theta":500000.0,)" + scaling + "}"}) {
    RopeConfig rope = read_llama(more).rope;
    EXPECT_EQ(rope.type, RopeType::kLlama3);
    EXPECT_EQ(rope.theta, 500'000.0);
    EXPECT_EQ(rope.factor, 8.0);
    EXPECT_EQ(rope.low_freq_factor, 1.0);
    EXPECT_EQ(rope.high_freq_factor, 4.0);
    EXPECT_EQ(rope.original_max_position_embeddings, 32);
  }
  EXPECT_EQ(read_llama(R"("rope_theta":777.0)").rope.theta, 777.0);
  EXPECT_EQ(read_llama(R"("rope_parameters":{"rope_theta":5.0,"rope_type":"default"})").rope.theta, 5.0);
  // Old files have "type" for "rope_type", and no original_max_position_embeddings.
  RopeConfig old = read_llama(R"("rope_scaling":{"type":"llama3","factor":2,"low_freq_factor":1,
                                                 "high_freq_factor":4})")
                       .rope;
  EXPECT_EQ(old.original_max_position_embeddings, 128);
}

TEST(LlamaConfig, RefusesRopeByNameAndValue) {
  expect_llama_fails(
      kUnsupported, R"("rope_scaling":{"rope_type":"proportional","factor":4.0})",
      "rope_scaling.rope_type = \"proportional\": not supported; rotary embeddings may be default");
  expect_llama_fails(kUnsupported, R"("rope_scaling":{"type":"su","factor":4.0})",
                     "rope_scaling.type = \"su\": not supported");
  expect_llama_fails(kUnsupported, R"("partial_rotary_factor":0.5)", "partial_rotary_factor = 0.5");
  expect_llama_fails(kUnsupported, R"("rope_parameters":{"partial_rotary_factor":0.5})",
                     "rope_parameters.partial_rotary_factor = 0.5");
  expect_llama_fails(kBad, R"("rope_parameters":{"rope_type":"llama3"})",
                     "'rope_parameters.factor' is missing");
  expect_llama_fails(kBad, R"("rope_theta":0)", "rope_theta = 0: must be a number");
  expect_llama_fails(kBad, R"("rope_parameters":[])", "rope_parameters = []: must be an object");
  expect_llama_fails(kBad, R"("rope_scaling":{"rope_type":"llama3","factor":2.0,"low_freq_factor":4.0,
                               "high_freq_factor":4.0})",
                     "high_freq_factor = 4.0: must be greater");
}

TEST(LlamaConfig, RefusesWhatItDoesNotCompute) {
  expect_llama_fails(kUnsupported, R"("hidden_act":"mish")",
                     "hidden_act = \"mish\": not supported; it may be silu");
  expect_llama_fails(kUnsupported, R"("quantization_config":{"bits":4})",
                     "quantization_config = {\"bits\":4}");
  expect_llama_fails(
      kUnsupported, R"("quantization_config":{"quant_method":"compressed-tensors","format":"marlin-24"})",
      "format = \"marlin-24\": not supported; it may be float-quantized, int-quantized, pack-quantized, "
      "nvfp4-pack-quantized, mxfp4-pack-quantized or mixed-precision");
  expect_llama_fails(
      kBad, R"("quantization_config":{"quant_method":"compressed-tensors","format":"pack-quantized"})",
      "must describe the weights of a group");
  for (const auto& [weights, wanted] :
       {std::pair{R"("num_bits":3)", "num_bits = 3: not supported; it may be 4 or 8"},
        {R"("num_bits":4,"strategy":"block","group_size":32)", "strategy = \"block\": not supported"},
        {R"("num_bits":4,"type":"float")", "type = \"float\": not supported; it may be int"},
        {R"("num_bits":4,"actorder":"group","group_size":32)", "actorder = \"group\": not supported"}})
    expect_llama_fails(kUnsupported,
                       fmt::format(R"("quantization_config":{{"quant_method":"compressed-tensors",
                       "format":"pack-quantized","config_groups":{{"group_0":{{"weights":{{{}}}}}}}}})",
                                   weights),
                       wanted);
  expect_llama_fails(kUnsupported, R"("quantization_config":{"quant_method":"compressed-tensors",
                       "format":"float-quantized","config_groups":{"group_0":{"weights":{"type":"int"}}}})",
                     "type = \"int\": not supported; it may be float");
  const auto mixed = [](const char* group) {
    return fmt::format(
        R"("quantization_config":{{"quant_method":"compressed-tensors","format":"mixed-precision",
                       "config_groups":{{"group_0":{{{}}}}}}})",
        group);
  };
  expect_llama_fails(
      kUnsupported, mixed(R"("weights":{"num_bits":4})"),
      "quantization_config.format = \"mixed-precision\": not supported; it may be float-quantized");
  expect_llama_fails(kUnsupported, mixed(R"("format":"marlin-24","weights":{"num_bits":4})"),
                     "config_groups.group_0.format = \"marlin-24\": not supported");
  expect_llama_fails(
      kUnsupported,
      mixed(R"("format":"mxfp4-pack-quantized","weights":{"num_bits":4,"type":"float","group_size":16})"),
      "group_size = 16: not supported; it may be 32");
  expect_llama_fails(kUnsupported, R"("is_encoder_decoder":true)", "is_encoder_decoder = true");
  std::string text = message(kUnsupported, [] {
    read_llama_config(Config::parse(R"({"architectures":["LlamaForDiffusion"]})", "c"));
  });
  EXPECT_NE(text.find("architectures = [\"LlamaForDiffusion\"]"), std::string::npos) << text;
}

TEST(CodeFormat, ShapesSayHowIntegersArePacked) {
  CodeFormat format;
  format.packings = {{4, 128}, {4, 32}, {8, 0}};
  EXPECT_EQ(packing_of(format, 512, 64, 4), (Packing{4, 128}));
  EXPECT_EQ(packing_of(format, 512, 64, 16), (Packing{4, 32}));
  EXPECT_EQ(packing_of(format, 512, 128, 1), (Packing{8, 0}));
  EXPECT_EQ(packing_of(format, 96, 12, 1), (Packing{4, 0})) << "a group is wider than a row";
  EXPECT_EQ(packing_of(format, 512, 64, 1), std::nullopt);
  EXPECT_EQ(packing_of(format, 512, 128, 4), std::nullopt);
  // A row of 40 has two groups of 32 or of 24, and nothing says which.
  format.packings = {{4, 32}, {4, 24}};
  EXPECT_EQ(packing_of(format, 40, 5, 2), std::nullopt);
  EXPECT_EQ(packing_of(format, 48, 6, 2), std::nullopt);
  EXPECT_EQ(packing_of(format, 96, 12, 3), (Packing{4, 32}));
}

// As Python's json writes them, in configurations of models with layers of state spaces.
TEST(Config, NumbersThatAreNoJsonAreWithinNoBounds) {
  const Config config = Config::parse(
      R"({"time_step_limit":[0.0,Infinity],"low":-Infinity,"rope_theta":NaN,"text":"NaN \" Infinity"})", "c");
  EXPECT_EQ(config.optional_string("text", ""), "NaN \" Infinity");
  EXPECT_NE(message(kBad, [&] { config.optional_number("rope_theta", 1, 0, 9); }).find("must be a number"),
            std::string::npos);
  EXPECT_NE(message(kBad, [&] { config.optional_numbers("time_step_limit", 0, 9); }).find("must be a number"),
            std::string::npos);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(config.optional_numbers("time_step_limit", 0, kInfinity), std::vector({0.0, kInfinity}));
  EXPECT_NE(message(kBad, [&] { config.optional_number("low", 1, 0, kInfinity); }).find("must be a number"),
            std::string::npos);
}

TEST(LlamaConfig, RefusesAbsurdValues) {
  expect_llama_fails(kBad, R"("head_dim":-2)", "head_dim = -2: must be a whole number from 1");
  expect_llama_fails(kBad, R"("head_dim":7)", "head_dim = 7: must be even");
  expect_llama_fails(kBad, R"("head_dim":8.0)", "head_dim = 8.0: must be a whole number");
  expect_llama_fails(kBad, R"("head_dim":99999999999999999999)", "must be a whole number");
  expect_llama_fails(kBad, R"("head_dim":18446744073709551615)", "must be a whole number");
  expect_llama_fails(kBad, R"("head_dim":4294967298)", "must be a whole number");
  expect_llama_fails(kBad, R"("head_dim":"8")", "head_dim = \"8\": must be a whole number");
  expect_llama_fails(kBad, R"("num_key_value_heads":0)", "num_key_value_heads = 0");
  expect_llama_fails(kBad, R"("num_key_value_heads":10)", "num_key_value_heads = 10");
  expect_llama_fails(kBad, R"("num_key_value_heads":3)", "must divide num_attention_heads");
  expect_llama_fails(kBad, R"("mlp_bias":1)", "mlp_bias = 1: must be true or false");
  expect_llama_fails(kBad, R"("hidden_act":7)", "hidden_act = 7: must be a string");
  expect_llama_fails(ErrorCode::kIo, R"("hidden_size":41)", "\"hidden_size\" appears twice");
  EXPECT_EQ(read_llama_config(Config::parse("{}", "c")).hidden_size, 4096) << "as transformers' class has it";
}

TEST(Gpt2Config, ReadsDefaultsAndValues) {
  Gpt2Config c = read_gpt2();
  EXPECT_EQ(c.n_inner, 160);
  EXPECT_EQ(c.activation_function, HiddenAct::kGeluTanh);
  EXPECT_TRUE(c.tie_word_embeddings);
  EXPECT_DOUBLE_EQ(c.attention_scale(3), 1.0 / std::sqrt(8.0));
  c = read_gpt2(R"("n_inner":77,"activation_function":"gelu","scale_attn_weights":false,
                   "scale_attn_by_inverse_layer_idx":true,"layer_norm_epsilon":1e-3)");
  EXPECT_EQ(c.n_inner, 77);
  EXPECT_EQ(c.activation_function, HiddenAct::kGelu);
  EXPECT_DOUBLE_EQ(c.attention_scale(3), 0.25);
  EXPECT_EQ(c.layer_norm_epsilon, 1e-3);
}

TEST(Gpt2Config, RefusesByNameAndValue) {
  auto text = message(kUnsupported, [] { read_gpt2(R"("add_cross_attention":true)"); });
  EXPECT_NE(text.find("add_cross_attention = true: not supported"), std::string::npos) << text;
  text = message(kBad, [] { read_gpt2(R"("layer_norm_epsilon":-1)"); });
  EXPECT_NE(text.find("layer_norm_epsilon = -1"), std::string::npos) << text;
  text = message(kBad, [] {
    read_gpt2_config(
        Config::parse(R"({"vocab_size":9,"n_positions":9,"n_embd":41,"n_layer":1,"n_head":5})", "c"));
  });
  EXPECT_NE(text.find("n_embd = 41: must be a multiple of n_head"), std::string::npos) << text;
}

TEST(Config, ReadsTypesOfWeights) {
  EXPECT_EQ(Config::parse(R"({"dtype":"bfloat16"})", "c").dtype(), DType::kBf16);
  EXPECT_EQ(Config::parse(R"({"torch_dtype":"float16"})", "c").dtype(), DType::kF16);
  EXPECT_EQ(Config::parse("{}", "c").dtype(), std::nullopt);
  auto text =
      message(kUnsupported, [] { (void)Config::parse(R"({"torch_dtype":"float8_e4m3fn"})", "c").dtype(); });
  EXPECT_NE(text.find("torch_dtype = \"float8_e4m3fn\""), std::string::npos) << text;
}

TEST(Config, ReadsOneNumberOrAList) {
  Config c = Config::parse(R"({"one":2,"more":[3,4],"bad":[1,"x"]})", "c");
  EXPECT_EQ(c.optional_ints("one", 0, 9), std::vector<int>{2});
  EXPECT_EQ(c.optional_ints("more", 0, 9), (std::vector<int>{3, 4}));
  EXPECT_EQ(c.optional_ints("none", 0, 9), std::vector<int>{});
  EXPECT_THROW(c.optional_ints("bad", 0, 9), Error);
  EXPECT_THROW(c.optional_ints("more", 0, 3), Error);
  EXPECT_EQ(c.unread(), std::vector<std::string>{});
}

TEST(Config, KnowsWhatNobodyRead) {
  Config c = Config::parse(R"({"a":1,"b":2,"c":null})", "c");
  EXPECT_TRUE(c.has("a"));
  EXPECT_FALSE(c.has("c"));
  EXPECT_EQ(c.unread(), std::vector<std::string>{"b"});
}

TEST(Config, RefusesFilesThatAreNone) {
  EXPECT_THROW(Config::load("/nonexistent"), Error);
  for (const char* text : {"", "[]", "7", "{", "{\"a\":1e999}", "{} x"})
    EXPECT_NE(message(ErrorCode::kIo, [&] { Config::parse(text, "c"); }), "no error") << text;
}

}  // namespace
}  // namespace heddle
