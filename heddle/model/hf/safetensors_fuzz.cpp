// Any bytes are either refused with an Error, or every tensor lies inside them with the size of its shape.
#include <cstdint>
#include <span>

#include "heddle/base/error.h"
#include "heddle/base/invariant.h"
#include "heddle/model/hf/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    auto header = heddle::parse_safetensors_header(std::as_bytes(std::span(data, size)), "fuzz");
    for (const auto& [name, entry] : header.tensors) {
      HEDDLE_CHECK(entry.begin <= size && entry.size <= size - entry.begin);
      if (!entry.dtype) continue;
      size_t bytes = size_t(size_of(*entry.dtype));
      for (int64_t dim : entry.shape) HEDDLE_CHECK(!__builtin_mul_overflow(bytes, size_t(dim), &bytes));
      HEDDLE_CHECK(bytes == entry.size);
    }
  } catch (const heddle::Error& error) {
    if (error.code() != heddle::ErrorCode::kIo) throw;
  }
  return 0;
}
