#include "heddle/base/element.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "heddle/base/error.h"
#include "heddle/base/float16.h"
#include "heddle/base/float8.h"

namespace heddle {
namespace {

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

[[noreturn]] void fail_without_address(DType type) {
  fail(ErrorCode::kUnsupported, "[element] elements of type {} have no addresses of their own", name(type));
}

}  // namespace

double load_number(DType type, const std::byte* at) {
  switch (type) {
    case DType::kF32:
      return double(load<float>(at));
    case DType::kF16:
      return double(f16_to_float(load<uint16_t>(at)));
    case DType::kBf16:
      return double(bf16_to_float(load<uint16_t>(at)));
    case DType::kF8E4M3:
      return double(f8e4m3_to_float(load<uint8_t>(at)));
    case DType::kF8E5M2:
      return double(f8e5m2_to_float(load<uint8_t>(at)));
    case DType::kI32:
      return load<int32_t>(at);
    case DType::kU8:
    case DType::kBool:
      return load<uint8_t>(at);
    case DType::kI8:
      return load<int8_t>(at);
    case DType::kI64:
      return double(load<int64_t>(at));
    case DType::kI4:
      break;
  }
  fail_without_address(type);
}

void store_number(DType type, std::byte* at, double value) {
  switch (type) {
    case DType::kF32:
      return store(at, float(value));
    case DType::kF16:
      return store(at, float_to_f16(float(value)));
    case DType::kBf16:
      return store(at, float_to_bf16(float(value)));
    case DType::kF8E4M3:
      return store(at, float_to_f8e4m3(float(value)));
    case DType::kF8E5M2:
      return store(at, float_to_f8e5m2(float(value)));
    case DType::kI32:
      return store(at, int32_t(std::llrint(value)));
    case DType::kU8:
      return store(at, uint8_t(std::llrint(value)));
    case DType::kBool:
      return store(at, uint8_t(value != 0));
    case DType::kI8:
      return store(at, int8_t(std::llrint(value)));
    case DType::kI64:
      return store(at, int64_t(std::llrint(value)));
    case DType::kI4:
      break;
  }
  fail_without_address(type);
}

double load_number(DType type, const std::byte* from, long long index) {
  if (type != DType::kI4) return load_number(type, from + index * size_of(type));
  const int code = int(from[index / 2]) >> (index % 2 * 4) & 15;
  return code < 8 ? code : code - 16;
}

void store_number(DType type, std::byte* to, long long index, double value) {
  if (type != DType::kI4) return store_number(type, to + index * size_of(type), value);
  const int shift = int(index % 2 * 4), code = int(std::llrint(value)) & 15;
  to[index / 2] = std::byte((int(to[index / 2]) & ~(15 << shift)) | code << shift);
}

float round_to(DType type, float value) {
  if (type == DType::kF32) return value;
  std::byte bytes[sizeof(double)];
  store_number(type, bytes, double(value));
  return float(load_number(type, bytes));
}

}  // namespace heddle
