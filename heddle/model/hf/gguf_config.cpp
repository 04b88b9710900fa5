#include "heddle/model/hf/gguf_config.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "heddle/base/error.h"
#include "heddle/base/json.h"

namespace heddle {
namespace {

constexpr int64_t kMostSize = 1 << 30;  // what a size may be is checked where config.json is read
constexpr const char *kOutput = "output.weight", *kEmbedding = "token_embd.weight";

struct Key {
  const char *file, *config;
};
constexpr Key kSizes[] = {
    {"block_count", "num_hidden_layers"},
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"context_length", "max_position_embeddings"},
};

std::string own_key(const Gguf& file, std::string_view key) {
  return fmt::format("{}.{}", file.text("general.architecture", ""), key);
}

// A list has a number for each layer; all must be the same.
void add_size(const Gguf& file, const Key& key, Json& config) {
  const GgufValue* found = find_own(file, key.file);
  if (!found) return;
  if (!found->is_array()) {
    config[key.config] = found->as_int(0, kMostSize);
    return;
  }
  const std::vector<int64_t> values = found->ints();
  if (values.empty() || std::ranges::adjacent_find(values, std::ranges::not_equal_to()) != values.end())
    fail(ErrorCode::kUnsupported, "[{}] {} differs from layer to layer; must be the same in all", file.path(),
         own_key(file, key.file));
  config[key.config] = values.front();
}

void add_number(const Gguf& file, const char* key, const char* name, Json& config) {
  if (const GgufValue* found = find_own(file, key)) config[name] = found->as_number();
}

void add_int(const Gguf& file, const char* key, const char* name, Json& config) {
  if (const GgufValue* found = find_own(file, key)) config[name] = found->as_int(0, kMostSize);
}

std::vector<double> factors_of(const Gguf& file, const char* name) {
  const auto found = file.tensors().find(name);
  if (found == file.tensors().end()) return {};
  if (std::strcmp(found->second.tensor->type->name, "F32") != 0)
    fail(ErrorCode::kUnsupported, "[{}] tensor {} is in {}; factors of frequencies must be F32", file.path(),
         name, found->second.tensor->type->name);
  const std::span<const std::byte> bytes = found->second.bytes;
  std::vector<double> factors;
  for (size_t at = 0; at < bytes.size(); at += sizeof(float)) {
    float factor = 0;
    std::memcpy(&factor, &bytes[at], sizeof factor);
    factors.emplace_back(factor);
  }
  return factors;
}

// Factors of frequencies are tensors, which llama.cpp divides by; longrope's lists mean the same.
bool add_factors(const Gguf& file, Json& rope) {
  const std::vector<double> all = factors_of(file, "rope_freqs.weight");
  const std::vector<double> few = all.empty() ? factors_of(file, "rope_factors_short.weight") : all,
                            many = all.empty() ? factors_of(file, "rope_factors_long.weight") : all;
  if (few.empty() && many.empty()) return false;
  rope = Json::object({{"rope_type", "longrope"}, {"short_factor", few}, {"long_factor", many}});
  const GgufValue *scale = find_own(file, "rope.scaling.attn_factor"),
                  *original = find_own(file, "rope.scaling.original_context_length"),
                  *length = find_own(file, "context_length");
  if (!all.empty())
    rope["attention_factor"] = 1.0, original = length;
  else if (scale)
    rope["attention_factor"] = scale->as_number();
  if (original) rope["original_max_position_embeddings"] = original->as_int(1, kMostSize);
  return true;
}

void add_rope(const Gguf& file, Json& config) {
  add_number(file, "rope.freq_base", "rope_theta", config);
  const GgufValue *turned = find_own(file, "rope.dimension_count"),
                  *head = find_own(file, "attention.key_length");
  const Json *width = config.find("hidden_size"), *heads = config.find("num_attention_heads");
  const int64_t divisor = heads ? std::max<int64_t>(*heads->to_int(), 1) : 1;
  const int64_t dim = head ? head->as_int(1, kMostSize) : width ? *width->to_int() / divisor : 0;
  if (turned && dim > 0 && turned->as_int(1, kMostSize) != dim)
    config["partial_rotary_factor"] = double(turned->as_int(1, kMostSize)) / double(dim);
  Json rope;
  const GgufValue* type = find_own(file, "rope.scaling.type");
  const std::string named = type ? type->as_string() : "none";
  if (!add_factors(file, rope) && named != "none") {
    rope = Json::object({{"rope_type", named}});
    add_number(file, "rope.scaling.factor", "factor", rope);
    add_int(file, "rope.scaling.original_context_length", "original_max_position_embeddings", rope);
  }
  if (!rope.is_null()) config["rope_scaling"] = std::move(rope);
}

void add_experts(const Gguf& file, Json& config) {
  const GgufValue* count = find_own(file, "expert_count");
  if (!count || count->as_int(0, kMostSize) == 0) return;
  config["num_experts"] = count->as_int(0, kMostSize);
  add_int(file, "expert_used_count", "num_experts_per_tok", config);
  add_int(file, "expert_feed_forward_length", "moe_intermediate_size", config);
  add_int(file, "expert_shared_feed_forward_length", "shared_expert_intermediate_size", config);
}

void add_window(const Gguf& file, Json& config) {
  add_int(file, "attention.sliding_window", "sliding_window", config);
}

int64_t own_int(const Gguf& file, std::string_view key, int64_t otherwise) {
  const GgufValue* found = find_own(file, key);
  return found ? found->as_int(0, kMostSize) : otherwise;
}

// Mistral's and Mixtral's files are Llama's, too.
void add_llama(const Gguf& file, Json& config) {
  if (config.find("num_experts")) {
    config["model_type"] = "mixtral";
    add_int(file, "expert_count", "num_local_experts", config);
    return;
  }
  if (!find_own(file, "attention.sliding_window")) return;
  config["model_type"] = "mistral";
  add_window(file, config);
}

void add_qwen3moe(const Gguf&, Json& config) {
  config["norm_topk_prob"] = true;  // llama.cpp always does
}

// The divisor of scores is no key: llama.cpp knows that the largest model of each generation divides by the mean size of heads.
void add_gemma(const Gguf& file, Json& config, int64_t layers_of_largest) {
  add_window(file, config);
  const int64_t heads = std::max<int64_t>(own_int(file, "attention.head_count", 1), 1);
  const bool largest = own_int(file, "block_count", 0) == layers_of_largest;
  config["query_pre_attn_scalar"] =
      largest ? own_int(file, "embedding_length", 0) / heads : own_int(file, "attention.key_length", 256);
}
void add_gemma2(const Gguf& file, Json& config) {
  add_gemma(file, config, 46);
  add_number(file, "attn_logit_softcapping", "attn_logit_softcapping", config);
  add_number(file, "final_logit_softcapping", "final_logit_softcapping", config);
}
void add_gemma3(const Gguf& file, Json& config) {
  add_gemma(file, config, 62);
  add_number(file, "final_logit_softcapping", "final_logit_softcapping", config);
  add_number(file, "rope.freq_base_swa", "rope_local_base_freq", config);
}

void add_granite(const Gguf& file, Json& config) {
  add_number(file, "attention.scale", "attention_multiplier", config);
  add_number(file, "embedding_scale", "embedding_multiplier", config);
  add_number(file, "residual_scale", "residual_multiplier", config);
  add_number(file, "logit_scale", "logits_scaling", config);
}

void add_olmo2(const Gguf& file, Json& config) {
  if (!find_own(file, "attention.sliding_window")) return;
  config["model_type"] = "olmo3";
  add_window(file, config);
}

using Name = std::pair<std::string_view, std::string_view>;
constexpr Name kGemmaNames[] = {{"post_attention_norm", "post_attention_layernorm"},
                                {"ffn_norm", "pre_feedforward_layernorm"},
                                {"post_ffw_norm", "post_feedforward_layernorm"}};
constexpr Name kOlmoNames[] = {{"post_attention_norm", "post_attention_layernorm"},
                               {"post_ffw_norm", "post_feedforward_layernorm"}};
constexpr Name kPhiNames[] = {{"ffn_up", "mlp.gate_up_proj"}};

constexpr GgufArchitecture kArchitectures[] = {
    {.name = "llama", .model_type = "llama", .turns_heads = true, .add = add_llama},
    {.name = "qwen2", .model_type = "qwen2"},
    {.name = "qwen2moe", .model_type = "qwen2_moe"},
    {.name = "qwen3", .model_type = "qwen3"},
    {.name = "qwen3moe", .model_type = "qwen3_moe", .add = add_qwen3moe},
    {.name = "gemma", .model_type = "gemma", .adds_one = true},
    {.name = "gemma2", .model_type = "gemma2", .adds_one = true, .names = kGemmaNames, .add = add_gemma2},
    {.name = "gemma3",
     .model_type = "gemma3_text",
     .adds_one = true,
     .names = kGemmaNames,
     .add = add_gemma3},
    {.name = "phi3", .model_type = "phi3", .names = kPhiNames, .add = add_window},
    {.name = "granite", .model_type = "granite", .turns_heads = true, .add = add_granite},
    {.name = "olmo2", .model_type = "olmo2", .names = kOlmoNames, .add = add_olmo2},
    {.name = "smollm3", .model_type = "smollm3", .turns_heads = true},
};

}  // namespace

const GgufValue* find_own(const Gguf& file, std::string_view key) {
  return file.find(own_key(file, key));
}

const GgufArchitecture& gguf_architecture(const Gguf& file) {
  const std::string name = file.at("general.architecture").as_string();
  const auto found = std::ranges::find(kArchitectures, name, &GgufArchitecture::name);
  if (found != std::end(kArchitectures)) return *found;
  std::vector<std::string_view> known;
  for (const GgufArchitecture& one : kArchitectures) known.push_back(one.name);
  fail(ErrorCode::kUnsupported,
       "[{}] general.architecture is {}, which heddle does not read as GGUF; it reads {} (the folder of the "
       "original model may "
       "run: `heddle models`)",
       file.path(), brief(name), fmt::join(known, ", "));
}

std::string gguf_config(const Gguf& file) {
  const GgufArchitecture& architecture = gguf_architecture(file);
  Json config = Json::object({{"model_type", architecture.model_type}});
  for (const Key& key : kSizes) add_size(file, key, config);
  const auto embedding = file.tensors().find(kEmbedding);
  if (embedding == file.tensors().end() || embedding->second.tensor->shape.size() != 2)
    fail(ErrorCode::kIo, "[{}] has no matrix {}, which a model needs (a vocabulary alone is no model)",
         file.path(), kEmbedding);
  config["vocab_size"] = embedding->second.tensor->shape[0];
  config["tie_word_embeddings"] = !file.tensors().contains(kOutput);
  config["attention_bias"] = file.tensors().contains("blk.0.attn_q.bias");
  config["mlp_bias"] = file.tensors().contains("blk.0.ffn_up.bias");
  add_number(file, "attention.layer_norm_rms_epsilon", "rms_norm_eps", config);
  add_experts(file, config);
  add_rope(file, config);
  if (architecture.add) architecture.add(file, config);
  return config.dump();
}

}  // namespace heddle
