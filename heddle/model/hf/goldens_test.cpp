// Reads the checkpoints in tests/goldens/models as scripts/goldens/make_models.py wrote them.
#include <filesystem>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/model/hf/checkpoint.h"
#include "heddle/model/hf/gpt2_config.h"
#include "heddle/model/hf/llama_config.h"
#include "heddle/model/hf/safetensors.h"
#include "heddle/model/hf/tensor_file.h"

namespace heddle {
namespace {

std::string folder_of(const std::string& name) {
  return HEDDLE_SOURCE_DIR "/tests/goldens/models/" + name;
}

LlamaConfig golden_llama(const std::string& name) {
  return read_llama_config(Config::load(folder_of(name)));
}
Gpt2Config golden_gpt2(const std::string& name) {
  return read_gpt2_config(Config::load(folder_of(name)));
}

void expect_shape(const Checkpoint& weights, const std::string& name, const std::vector<int64_t>& shape) {
  EXPECT_EQ(weights.weight(name).shape, shape) << name;
}

// Reads the tensors of the last layer in the shapes that the configuration gives them.
void expect_llama_weights(const std::string& name, DType dtype) {
  const LlamaConfig c = golden_llama(name);
  Checkpoint weights(folder_of(name));
  const std::string layer = "model.layers." + std::to_string(c.num_hidden_layers - 1) + ".";
  const int q = c.num_attention_heads * c.head_dim, kv = c.num_key_value_heads * c.head_dim;
  EXPECT_EQ(weights.weight(layer + "self_attn.q_proj.weight").dtype, dtype);
  expect_shape(weights, layer + "self_attn.q_proj.weight", {q, c.hidden_size});
  expect_shape(weights, layer + "self_attn.k_proj.weight", {kv, c.hidden_size});
  expect_shape(weights, layer + "self_attn.o_proj.weight", {c.hidden_size, q});
  expect_shape(weights, layer + "mlp.down_proj.weight", {c.hidden_size, c.intermediate_size});
  expect_shape(weights, "model.embed_tokens.weight", {c.vocab_size, c.hidden_size});
  EXPECT_EQ(weights.has("lm_head.weight"), !c.tie_word_embeddings);
  EXPECT_EQ(weights.has(layer + "self_attn.v_proj.bias"), c.attention_bias);
  EXPECT_EQ(weights.has(layer + "mlp.up_proj.bias"), c.mlp_bias);
}

TEST(Goldens, LlamaWeightsHaveTheShapesOfTheirConfig) {
  expect_llama_weights("llama2-tiny", DType::kF32);
  expect_llama_weights("llama3-tiny", DType::kBf16);
  expect_llama_weights("llama-f16", DType::kF16);
  expect_llama_weights("llama-bias", DType::kF32);
  expect_llama_weights("llama-v4", DType::kBf16);
  expect_llama_weights("llama-sharded", DType::kBf16);
}

TEST(Goldens, LlamaConfigsSayWhatTheScriptSays) {
  EXPECT_EQ(golden_llama("llama2-tiny").rope.type, RopeType::kDefault);
  LlamaConfig tied = golden_llama("llama3-tiny");
  EXPECT_TRUE(tied.tie_word_embeddings);
  EXPECT_EQ(tied.head_dim, 20);  // 60 / 5 is 12
  EXPECT_EQ(tied.num_key_value_heads, 1);
  EXPECT_EQ(golden_llama("llama-bias").hidden_act, HiddenAct::kGelu);
  // the same configuration as transformers 5 and 4 write it
  for (const char* name : {"llama3-tiny", "llama-v4"}) {
    RopeConfig rope = golden_llama(name).rope;
    EXPECT_EQ(rope.type, RopeType::kLlama3) << name;
    EXPECT_EQ(rope.theta, 10'000.0) << name;
    EXPECT_EQ(rope.factor, 8.0) << name;
    EXPECT_EQ(rope.original_max_position_embeddings, 32) << name;
    EXPECT_EQ(Config::load(folder_of(name)).dtype(), DType::kBf16) << name;
  }
}

TEST(Goldens, Gpt2WeightsHaveTheShapesOfTheirConfig) {
  for (const char* name : {"gpt2-tiny", "gpt2-bf16", "gpt2-options"}) {
    const Gpt2Config c = golden_gpt2(name);
    Checkpoint weights(folder_of(name));
    const std::string layer = "transformer.h." + std::to_string(c.n_layer - 1) + ".";
    expect_shape(weights, layer + "attn.c_attn.weight", {c.n_embd, 3 * c.n_embd});
    expect_shape(weights, layer + "mlp.c_proj.weight", {c.n_inner, c.n_embd});
    expect_shape(weights, "transformer.wpe.weight", {c.n_positions, c.n_embd});
    EXPECT_EQ(weights.has("lm_head.weight"), !c.tie_word_embeddings);
  }
  Gpt2Config options = golden_gpt2("gpt2-options");
  EXPECT_EQ(options.n_inner, 77);
  EXPECT_EQ(options.activation_function, HiddenAct::kGelu);
  EXPECT_TRUE(options.scale_attn_by_inverse_layer_idx);
  EXPECT_FALSE(options.tie_word_embeddings);
}

TEST(Goldens, HoldLogitsAndGreedyTokens) {
  for (const auto& entry : std::filesystem::directory_iterator(folder_of(""))) {
    TensorFile golden(entry.path() / "golden.safetensors");
    const auto tokens = golden.view("tokens"), logits = golden.view("logits");
    EXPECT_EQ(tokens.dtype, DType::kI32);
    EXPECT_EQ(logits.dtype, DType::kF32);
    EXPECT_EQ(logits.shape, (std::vector<int64_t>{tokens.shape[0], 131})) << entry.path();
    EXPECT_EQ(golden.view("greedy").shape, golden.view("greedy_margin").shape);
  }
}

TEST(Goldens, NoPartOfAFileIsTakenForTheWhole) {
  const std::string content = read_file(folder_of("gpt2-tiny/model.safetensors"));
  const auto bytes = std::as_bytes(std::span(content));
  EXPECT_EQ(parse_safetensors_header(bytes, "whole").tensors.size(), 28u);
  for (size_t size = 0; size < bytes.size(); size += size < 4096 ? 1 : 997)
    EXPECT_THROW(parse_safetensors_header(bytes.first(size), "cut"), Error) << size;
}

}  // namespace
}  // namespace heddle
