// Any text is either refused with an Error, or gives configurations whose sizes keep their promises.
#include <cstdint>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/model/hf/gpt2_config.h"
#include "heddle/model/hf/llama_config.h"

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

void read_llama(std::string_view text) {
  auto c = heddle::read_llama_config(heddle::Config::parse(text, "fuzz"));
  HEDDLE_CHECK(c.num_attention_heads % c.num_key_value_heads == 0 && c.head_dim % 2 == 0 && c.head_dim > 0);
  HEDDLE_CHECK(c.rope.theta > 0 && c.rope.low_freq_factor < c.rope.high_freq_factor);
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
  run([&] { (void)heddle::Config::parse(text, "fuzz").dtype(); });
  return 0;
}
