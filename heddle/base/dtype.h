// Element types, in one table. Everything else about a type follows from its row. Host and device include it:
// no standard headers.
#pragma once

namespace heddle {

// Stored programs contain these numbers.
enum class DType : unsigned char { kF32, kF16, kBf16, kI32, kU8, kF8E4M3, kF8E5M2, kI8, kI4, kI64, kBool };

enum class DTypeKind : unsigned char { kFloat, kInteger, kBool };

struct DTypeInfo {
  DType type;
  const char* name;
  const char* safetensors;  // Hugging Face's name in files; empty where the format has no such type
  const char* numpy;        // name in NumPy and PyTorch, including those of ml_dtypes
  int bits;
  DTypeKind kind;
  int mantissa = 0;  // stored bits of a float's mantissa
};

constexpr DTypeInfo kDTypes[] = {
    {DType::kF32, "f32", "F32", "float32", 32, DTypeKind::kFloat, 23},
    {DType::kF16, "f16", "F16", "float16", 16, DTypeKind::kFloat, 10},
    {DType::kBf16, "bf16", "BF16", "bfloat16", 16, DTypeKind::kFloat, 7},
    {DType::kI32, "i32", "I32", "int32", 32, DTypeKind::kInteger},
    {DType::kU8, "u8", "U8", "uint8", 8, DTypeKind::kInteger},
    {DType::kF8E4M3, "f8e4m3", "F8_E4M3", "float8_e4m3fn", 8, DTypeKind::kFloat, 3},
    {DType::kF8E5M2, "f8e5m2", "F8_E5M2", "float8_e5m2", 8, DTypeKind::kFloat, 2},
    {DType::kI8, "i8", "I8", "int8", 8, DTypeKind::kInteger},
    {DType::kI4, "i4", "", "int4", 4, DTypeKind::kInteger},
    {DType::kI64, "i64", "I64", "int64", 64, DTypeKind::kInteger},
    {DType::kBool, "bool", "BOOL", "bool", 8, DTypeKind::kBool},
};

constexpr int kNumDTypes = sizeof(kDTypes) / sizeof(kDTypes[0]);

namespace dtype_detail {

constexpr bool in_order() {
  for (int i = 0; i < kNumDTypes; ++i)
    if (int(kDTypes[i].type) != i) return false;
  return true;
}
static_assert(in_order() && kNumDTypes <= 16);

// log2 of the bytes of every type, two bits per type in one word: device code reads no table from memory.
constexpr unsigned int packed_log2_bytes() {
  unsigned int word = 0;
  for (int i = 0; i < kNumDTypes; ++i)
    for (int bytes = kDTypes[i].bits / 8; bytes > 1; bytes /= 2) word += 1u << (2 * i);
  return word;
}
constexpr unsigned int kLog2Bytes = packed_log2_bytes();

}  // namespace dtype_detail

constexpr const DTypeInfo& info_of(DType type) {
  return kDTypes[int(type)];
}
constexpr const char* name(DType type) {
  return int(type) < kNumDTypes ? info_of(type).name : "?";
}
constexpr int bits_of(DType type) {
  return info_of(type).bits;
}

// Bytes of one element. A single i4 takes one byte.
constexpr int size_of(DType type) {
  return 1 << ((dtype_detail::kLog2Bytes >> (2 * int(type))) & 3);
}

// Bytes of `count` adjacent elements.
constexpr long long bytes_of(DType type, long long count) {
  return (count * bits_of(type) + 7) / 8;
}

constexpr bool is_float(DType type) {
  return info_of(type).kind == DTypeKind::kFloat;
}
constexpr bool is_integer(DType type) {
  return info_of(type).kind == DTypeKind::kInteger;
}
// f32, f16 and bf16: the types that every op computes with. Narrower floats need scales.
constexpr bool is_wide_float(DType type) {
  return is_float(type) && bits_of(type) >= 16;
}

}  // namespace heddle
