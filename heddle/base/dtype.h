// Element types. Read by host and device: no standard headers.
#pragma once

namespace heddle {

enum class DType : unsigned char { kF32, kF16, kBf16, kI32, kU8 };

constexpr int kNumDTypes = 5;

// Bytes of one element.
constexpr int size_of(DType type) {
  switch (type) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBf16:
      return 2;
    case DType::kU8:
      return 1;
  }
  return 0;
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
