// Models of full size without weights: enough to build their programs and to prove them.
#pragma once

#include "heddle/base/error.h"
#include "heddle/engine/model.h"
#include "heddle/model/build/family.h"

namespace heddle {

inline constexpr const char* kLlama1B =
    R"({"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
  "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
  "vocab_size": 128256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "tie_word_embeddings": true,
  "rope_theta": 500000.0, "hidden_act": "silu", "rope_scaling": {"rope_type": "llama3", "factor": 32.0,
  "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})";
inline constexpr const char* kLlama8B =
    R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
  "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
  "vocab_size": 128256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "tie_word_embeddings": false,
  "rope_theta": 500000.0, "hidden_act": "silu", "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
  "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})";

inline constexpr const char* kQwen8B =
    R"({"model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288,
  "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
  "vocab_size": 151936, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "tie_word_embeddings": false,
  "rope_theta": 1000000, "hidden_act": "silu"})";
inline constexpr const char* kGemma2B =
    R"({"model_type": "gemma2", "hidden_size": 2304, "intermediate_size": 9216,
  "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
  "vocab_size": 256000, "max_position_embeddings": 8192, "rms_norm_eps": 1e-6, "sliding_window": 4096,
  "query_pre_attn_scalar": 256, "hidden_activation": "gelu_pytorch_tanh"})";
// The shapes of DeepSeek V2 Lite, and of V3 with its 128 heads, with few layers and no experts.
inline constexpr const char* kDeepseekLite = R"({"model_type": "deepseek_v2", "hidden_size": 2048,
  "intermediate_size": 10944, "num_hidden_layers": 12, "first_k_dense_replace": 12, "num_attention_heads": 16,
  "vocab_size": 102400, "max_position_embeddings": 163840, "rms_norm_eps": 1e-6, "q_lora_rank": null,
  "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128})";
inline constexpr const char* kDeepseekV3 = R"({"model_type": "deepseek_v3", "hidden_size": 7168,
  "intermediate_size": 18432, "num_hidden_layers": 3, "num_attention_heads": 128, "vocab_size": 129280,
  "max_position_embeddings": 163840, "rms_norm_eps": 1e-6, "q_lora_rank": 1536, "kv_lora_rank": 512,
  "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128})";

// The shapes of Qwen3-30B-A3B and Mixtral-8x7B, with few layers.
inline constexpr const char* kQwen30B =
    R"({"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144,
  "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": true,
  "num_hidden_layers": 4, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
  "vocab_size": 151936, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "rope_theta": 1000000})";
inline constexpr const char* kMixtral =
    R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
  "num_local_experts": 8, "num_experts_per_tok": 2, "num_hidden_layers": 8, "num_attention_heads": 32,
  "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 32768, "rms_norm_eps": 1e-5,
  "rope_theta": 1000000})";

// A model without weights.
class Shapes : public Model {
 public:
  explicit Shapes(const char* config)
      : tensors_{.has = [](const std::string&) { return true; },
                 .dtype = [](const std::string&) { return DType::kBf16; }},
        definition_(define_model(Config::parse(config, "config.json"), tensors_)) {}
  const ModelInfo& info() const override { return definition_.info; }
  ModelGraph graph(const GraphRequest& request) const override {
    Builder builder(request, definition_.info, tensors_);
    definition_.build(builder);
    return builder.take();
  }
  SourceData source(const std::string& tensor) const override {
    fail(ErrorCode::kInternal, "[{}] these are shapes without weights", tensor);
  }
  std::string fingerprint() const override { return ""; }
  void forget(const std::string&) const override {}

 private:
  Inventory tensors_;
  Definition definition_;
};

}  // namespace heddle
