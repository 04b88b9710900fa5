// Any text is either refused with an Error, or gives ranks and scales within their limits.
#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/base/invariant.h"
#include "heddle/model/hf/adapter_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string module = "model.layers.0.self_attn.q_proj";
  try {
    const heddle::AdapterConfig config("adapter", text);
    const auto [rank, scale] = config.rank_and_scale(module);
    HEDDLE_CHECK(rank > 0 && scale * scale < 1e13f);
    config.require_chosen({module}, "adapter_model.safetensors");
  } catch (const heddle::Error& error) {
    if (error.code() == heddle::ErrorCode::kInternal) throw;
  }
  return 0;
}
