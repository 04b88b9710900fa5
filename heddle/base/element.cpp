#include "heddle/base/element.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "heddle/base/elements.h"
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

// Calls f.operator()<TYPE>() for the type.
template <class F>
auto of_type(DType type, F&& f) {
  switch (type) {
    case DType::kF32:
      return f.template operator()<DType::kF32>();
    case DType::kF16:
      return f.template operator()<DType::kF16>();
    case DType::kBf16:
      return f.template operator()<DType::kBf16>();
    case DType::kF8E4M3:
      return f.template operator()<DType::kF8E4M3>();
    case DType::kF8E5M2:
      return f.template operator()<DType::kF8E5M2>();
    case DType::kI32:
      return f.template operator()<DType::kI32>();
    case DType::kU8:
      return f.template operator()<DType::kU8>();
    case DType::kBool:
      return f.template operator()<DType::kBool>();
    case DType::kI8:
      return f.template operator()<DType::kI8>();
    case DType::kI64:
      return f.template operator()<DType::kI64>();
    case DType::kI4:
      break;
  }
  fail(ErrorCode::kUnsupported, "[element] elements of type {} have no addresses of their own", name(type));
}

template <DType kType>
double load_as(const std::byte* at) {
  if constexpr (kType == DType::kF32) return double(load<float>(at));
  if constexpr (kType == DType::kF16) return double(f16_to_float(load<uint16_t>(at)));
  if constexpr (kType == DType::kBf16) return double(bf16_to_float(load<uint16_t>(at)));
  if constexpr (kType == DType::kF8E4M3) return double(f8e4m3_to_float(load<uint8_t>(at)));
  if constexpr (kType == DType::kF8E5M2) return double(f8e5m2_to_float(load<uint8_t>(at)));
  if constexpr (kType == DType::kI32) return load<int32_t>(at);
  if constexpr (kType == DType::kU8 || kType == DType::kBool) return load<uint8_t>(at);
  if constexpr (kType == DType::kI8) return load<int8_t>(at);
  if constexpr (kType == DType::kI64) return double(load<int64_t>(at));
}

template <DType kType>
void store_as(std::byte* at, double value) {
  if constexpr (kType == DType::kF32) store(at, float(value));
  if constexpr (kType == DType::kF16) store(at, float_to_f16(float(value)));
  if constexpr (kType == DType::kBf16) store(at, float_to_bf16(float(value)));
  if constexpr (kType == DType::kF8E4M3) store(at, float_to_f8e4m3(float(value)));
  if constexpr (kType == DType::kF8E5M2) store(at, float_to_f8e5m2(float(value)));
  if constexpr (kType == DType::kI32) store(at, int32_t(std::llrint(value)));
  if constexpr (kType == DType::kU8) store(at, uint8_t(std::llrint(value)));
  if constexpr (kType == DType::kBool) store(at, uint8_t(value != 0));
  if constexpr (kType == DType::kI8) store(at, int8_t(std::llrint(value)));
  if constexpr (kType == DType::kI64) store(at, int64_t(std::llrint(value)));
}

}  // namespace

double load_number(DType type, const std::byte* at) {
  return of_type(type, [&]<DType kType>() { return load_as<kType>(at); });
}

void store_number(DType type, std::byte* at, double value) {
  of_type(type, [&]<DType kType>() { store_as<kType>(at, value); });
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

void load_numbers(DType type, const std::byte* from, long long first, long long step,
                  std::span<double> values) {
  if (type == DType::kI4) {
    for (double& value : values) value = load_number(type, from, std::exchange(first, first + step));
    return;
  }
  of_type(type, [&]<DType kType>() {
    const std::byte* at = from + first * size_of(kType);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = load_as<kType>(at + (long long)(i)*step * size_of(kType));
  });
}

void store_numbers(DType type, std::byte* to, long long first, long long step,
                   std::span<const double> values) {
  if (type == DType::kI4) {
    for (double value : values) store_number(type, to, std::exchange(first, first + step), value);
    return;
  }
  of_type(type, [&]<DType kType>() {
    std::byte* at = to + first * size_of(kType);
    for (size_t i = 0; i < values.size(); ++i)
      store_as<kType>(at + (long long)(i)*step * size_of(kType), values[i]);
  });
}

float round_to(DType type, float value) {
  if (type == DType::kF32) return value;
  std::byte bytes[sizeof(double)];
  store_number(type, bytes, double(value));
  return float(load_number(type, bytes));
}

}  // namespace heddle
