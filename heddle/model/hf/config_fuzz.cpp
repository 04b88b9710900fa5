// Any text is either refused with an Error, or gives configurations whose sizes keep their promises.
#include <cstdint>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/model/hf/gemma_config.h"
#include "heddle/model/hf/gpt2_config.h"
#include "heddle/model/hf/llama_config.h"
#include "heddle/model/hf/mistral_config.h"
#include "heddle/model/hf/qwen_config.h"

namespace {

// Errors are what a bad file ends in, but for those that say that heddle itself is broken.
template <class Action>
void run(Action action) {
  try {
    action();
  } catch (const heddle::Error& error) {
    if (error.code() == heddle::ErrorCode::kInternal) throw;
  }
}

void check_rope(const heddle::RopeConfig& rope, const heddle::DecoderConfig& c) {
  HEDDLE_CHECK(rope.theta > 0 && rope.low_freq_factor < rope.high_freq_factor && rope.factor > 0);
  HEDDLE_CHECK(rope.max_positions > 0 && rope.max_positions <= c.max_position_embeddings);
  HEDDLE_CHECK(rope.type != heddle::RopeType::kLongrope || int(rope.short_factor.size()) == c.head_dim / 2);
}

void check_decoder(const heddle::DecoderConfig& c) {
  HEDDLE_CHECK(c.num_attention_heads % c.num_key_value_heads == 0 && c.head_dim % 2 == 0 && c.head_dim > 0);
  check_rope(c.rope, c);
}

void check_windows(const std::vector<int>& windows, const heddle::DecoderConfig& c) {
  HEDDLE_CHECK(int(windows.size()) == c.num_hidden_layers);
  for (int window : windows) HEDDLE_CHECK(window >= 0);
}

void read_llama(std::string_view text) {
  check_decoder(heddle::read_llama_config(heddle::Config::parse(text, "fuzz")));
}

void read_mistral(std::string_view text) {
  const auto c = heddle::read_mistral_config(heddle::Config::parse(text, "fuzz"));
  check_decoder(c);
  HEDDLE_CHECK(c.sliding_window >= 0);
}

template <class Read>
void read_qwen(std::string_view text, Read read) {
  const auto c = read(heddle::Config::parse(text, "fuzz"));
  check_decoder(c);
  check_windows(c.windows, c);
}

template <class Read>
void read_gemma(std::string_view text, Read read) {
  const auto c = read(heddle::Config::parse(text, "fuzz"));
  check_decoder(c);
  check_windows(c.windows, c);
  HEDDLE_CHECK(c.query_pre_attn_scalar > 0 && c.attn_logit_softcapping >= 0 &&
               c.final_logit_softcapping >= 0);
  if (c.local_rope.max_positions > 0) check_rope(c.local_rope, c);
}

void read_gpt2(std::string_view text) {
  auto c = heddle::read_gpt2_config(heddle::Config::parse(text, "fuzz"));
  HEDDLE_CHECK(c.n_embd % c.n_head == 0 && c.n_inner > 0 && c.attention_scale(c.n_layer - 1) > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  run([&] { read_llama(text); });
  run([&] { read_gpt2(text); });
  run([&] { read_mistral(text); });
  run([&] { read_qwen(text, heddle::read_qwen2_config); });
  run([&] { read_qwen(text, heddle::read_qwen3_config); });
  run([&] { read_gemma(text, heddle::read_gemma2_config); });
  run([&] { read_gemma(text, heddle::read_gemma3_config); });
  run([&] { (void)heddle::Config::parse(text, "fuzz").dtype(); });
  return 0;
}
