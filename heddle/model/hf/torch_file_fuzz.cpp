// Any bytes are either refused with an Error, or every element of every tensor lies inside them.
#include <cstdint>
#include <span>
#include <string_view>

#include "heddle/base/fuzz_payload.h"
#include "heddle/base/invariant.h"
#include "heddle/model/hf/torch_file.h"

namespace {

void check(const heddle::TensorEntry& entry, size_t size) {
  HEDDLE_CHECK(entry.begin <= size && entry.size <= size);
  size_t bytes = size_t(entry.bits / 8), last = 0;
  for (const int64_t dim : entry.shape) HEDDLE_CHECK(dim >= 0);
  for (const int64_t dim : entry.shape)
    if (dim == 0) bytes = 0;
  for (size_t d = 0; d < entry.shape.size(); ++d)
    HEDDLE_CHECK(bytes == 0 || !__builtin_mul_overflow(bytes, size_t(entry.shape[d]), &bytes));
  HEDDLE_CHECK(bytes == entry.size);
  if (entry.strides.empty()) {
    HEDDLE_CHECK(entry.size <= size - entry.begin);
    return;
  }
  HEDDLE_CHECK(entry.strides.size() == entry.shape.size() && entry.size > 0);
  for (size_t d = 0; d < entry.shape.size(); ++d)
    last += size_t(entry.strides[d]) * size_t(entry.shape[d] - 1) * size_t(entry.bits / 8);
  HEDDLE_CHECK(last + size_t(entry.bits / 8) <= size - entry.begin);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return heddle::fuzz_payload(data, size, 0, [&](std::string_view file) {
    const auto table = heddle::parse_torch_file(std::as_bytes(std::span(file)), "fuzz");
    for (const auto& [name, entry] : table.tensors) check(entry, file.size());
  });
}
