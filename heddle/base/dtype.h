// Element types. Read by host and device: no standard headers.
#pragma once

namespace heddle {

enum class DType : unsigned char { kF32, kF16, kBf16, kI32, kU8 };

constexpr int kNumDTypes = 5;

// Bytes of one element.
constexpr int size_of(DType type) {
  return type == DType::kF32 || type == DType::kI32 ? 4 : type == DType::kU8 ? 1 : 2;
}

constexpr const char* name(DType type) {
  switch (type) {
    case DType::kF32:
      return "f32";
    case DType::kF16:
      return "f16";
    case DType::kBf16:
      return "bf16";
    case DType::kI32:
      return "i32";
    case DType::kU8:
      return "u8";
  }
  return "?";
}

constexpr bool is_float(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBf16;
}

}  // namespace heddle
