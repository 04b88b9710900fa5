// Rows in memory or on chip, as tile bodies see them (tile/block.h).
#pragma once

#include "heddle/ir/weight.h"
#include "heddle/kit/arch/thread.cuh"
#include "heddle/kit/value/value.cuh"

namespace heddle::device {

struct Index {
  i32 at;
  friend Index operator+(Index i, i32 n) { return {i.at + n}; }
};

struct alignas(8) Pair {
  float first, second;
};

// One or two neighbouring columns of a one-row product, from column `at` on, in a thread's registers.
struct Columns {
  i32 at, count;
  float value[2];

  // f(i, value[i]) for each of them.
  template <class F>
  void each(F&& f) {
#pragma unroll
    for (i32 i = 0; i < 2; ++i)
      if (i < count) f(Index{i}, value[i]);
  }
};

// Two neighbouring elements that were prefetched: only get() waits for them.
struct Asked {
  DType dtype;
  u32 bits[2] = {};

  float get(i32 i) const {
    if (size_of(dtype) == 4) return __uint_as_float(bits[i]);
    return dtype == DType::kBf16 ? from_bf16(u16(bits[i])) : from_f16(u16(bits[i]));
  }
};

struct Strided;

struct View {
  u8* data;
  DType dtype;

  float load(Index i) const { return get(i.at); }
  void store(Index i, float value) const { set_here(i.at, value); }
  Pair load_pair(Index i) const { return {get(2 * i.at), get(2 * i.at + 1)}; }
  void store_pair(Index i, float first, float second) const {
    set_here(2 * i.at, first);
    set_here(2 * i.at + 1, second);
  }
  float load_rounded(Index i, DType as) const { return round_to(as, get(i.at)); }
  float load_bit(Index i) const { return float(u32(get_int(i.at / 32)) >> (i.at % 32) & 1); }
  float get(i32 j) const { return load_element(dtype, data, j); }
  // Prefetches the first `count` elements, at most two.
  Asked ask(i32 count) const {
    Asked asked{dtype};
#pragma unroll
    for (i32 i = 0; i < 2; ++i)
      if (i < count)
        asked.bits[i] = size_of(dtype) == 4 ? reinterpret_cast<const u32*>(data)[i]
                                            : reinterpret_cast<const u16*>(data)[i];
    return asked;
  }
  i32 get_int(i32 j) const { return reinterpret_cast<const i32*>(data)[j]; }
  // One thread stores; sync before another reads it.
  void set(i32 j, float value) const {
    if (arch::thread() == 0) set_here(j, value);
  }
  void set_int(i32 j, i32 value) const {
    if (arch::thread() == 0) reinterpret_cast<i32*>(data)[j] = value;
  }
  void set_byte(i32 j, i32 value) const {
    if (arch::thread() == 0) data[j] = u8(value);
  }
  // The calling thread stores.
  void set_here(i64 j, float value) const { store_element(dtype, data, j, value); }
  View from(i64 j) const { return {data + j * size_of(dtype), dtype}; }
  Strided every(i64 n) const;
};

// Stores two elements of a float dtype together, at an address that is aligned for both.
inline void store_two(const View& to, float first, float second) {
  if (to.dtype == DType::kF32)
    *reinterpret_cast<Pair*>(to.data) = {first, second};
  else
    *reinterpret_cast<u32*>(to.data) = pack_two(to.dtype, first, second);
}
// Stores columns at their place in a row.
inline void store_columns(const View& row, Columns columns) {
  const View to = row.from(columns.at);
  const bool of_floats = to.dtype != DType::kI32 && to.dtype != DType::kU8;
  if (of_floats && columns.count == 2 && reinterpret_cast<u64>(to.data) % u64(2 * size_of(to.dtype)) == 0)
    store_two(to, columns.value[0], columns.value[1]);
  else
    columns.each([&](Index i, float value) { to.store(i, value); });
}

struct Strided {
  View view;
  i64 step;

  float load(Index i) const { return view.from(i.at * step).get(0); }
  void store(Index i, float value) const { view.from(i.at * step).store(Index{0}, value); }
};

inline Strided View::every(i64 n) const {
  return {*this, n};
}

// Eight neighbouring elements. load() starts before the dtype matters; elements that were not loaded are zeros.
struct Octet {
  uint4 words[2] = {};
  float value[8];

  // Loads the `at`-th eight elements of a row that begins at a 16-byte word. Call it before decode().
  void load(const View& row, i32 at) {
    const auto* from = reinterpret_cast<const uint4*>(row.data + i64(at) * 8 * size_of(row.dtype));
    words[0] = from[0];
    if (row.dtype == DType::kF32) words[1] = from[1];
  }
  void decode(DType dtype) {
    const u32 bits[8] = {words[0].x, words[0].y, words[0].z, words[0].w,
                         words[1].x, words[1].y, words[1].z, words[1].w};
#pragma unroll
    for (i32 i = 0; i < 8; ++i) {
      const u32 half = i % 2 == 0 ? bits[i / 2] << 16 : bits[i / 2] & 0xffff0000u;
      value[i] = dtype == DType::kF32 ? __uint_as_float(bits[i]) : __uint_as_float(half);
      if (dtype == DType::kF16) value[i] = from_f16(u16(half >> 16));
    }
  }
  // Stores elements of 16 bits unchanged.
  void store_as_loaded(u8* row, i32 at) const { reinterpret_cast<uint4*>(row)[at] = words[0]; }
  void store(const View& row, i32 at) const {
    if (row.dtype == DType::kF32) {
      float4* to = reinterpret_cast<float4*>(row.data) + 2 * at;
      to[0] = {value[0], value[1], value[2], value[3]};
      to[1] = {value[4], value[5], value[6], value[7]};
      return;
    }
    u32 bits[4];
#pragma unroll
    for (i32 i = 0; i < 4; ++i)
      bits[i] = row.dtype == DType::kBf16 ? to_bf16(value[2 * i]) | u32(to_bf16(value[2 * i + 1])) << 16
                                          : to_f16(value[2 * i]) | u32(to_f16(value[2 * i + 1])) << 16;
    reinterpret_cast<uint4*>(row.data)[at] = {bits[0], bits[1], bits[2], bits[3]};
  }
};

// A format of rows for tensor cores: four bytes per element, two bf16 whose sum keeps 16 bits of a float's mantissa. Of each eight
// elements, in 32 bytes, the high halves come before the low ones, and in both pairs 0 and 2 come before pairs 1 and 3.
constexpr DType kSplit = DType(kNumDTypes);

// The place of the high half of element `i` of eight; the low half is eight places after it.
constexpr i32 split_place(i32 i) {
  return (i / 4 | i / 2 % 2 * 2) * 2 + i % 2;
}

// Two elements rounded to a 16-bit dtype, and the rounded remainders. The first element is in the low bits.
template <DType kType>
struct SplitPair {
  u32 high, low;

  SplitPair(float first, float second) : high(pack_two(kType, first, second)) {
    low = pack_two(kType, first - rounded(u16(high)), second - rounded(u16(high >> 16)));
  }

 private:
  static float rounded(u16 bits) { return kType == DType::kBf16 ? from_bf16(bits) : from_f16(bits); }
};
using SplitBf16 = SplitPair<DType::kBf16>;

// The format of rows that are multiplied with codes: four bytes per element, two f16, high and low, with value = 2^8 high + 2^-3 low. They
// keep 22 bits of numbers from 2^-6 to 2^24, and multiples of 2^-27 of smaller ones. Of each eight elements, in 32 bytes, the high ones
// come first.
constexpr DType kScaledHalves = DType(kNumDTypes + 1);
constexpr float kHighUnit = 256.0f, kLowUnit = 0.125f;

struct ScaledHalves {
  u32 high, low;  // two elements of each; the first is in the low bits

  ScaledHalves(float first, float second) {
    const float a = first * (1 / kHighUnit), b = second * (1 / kHighUnit);
    high = arch::pack_f16(a, b);
    low = arch::pack_f16((a - from_f16(u16(high))) * (kHighUnit / kLowUnit),
                         (b - from_f16(u16(high >> 16))) * (kHighUnit / kLowUnit));
  }
};

// True if an element has four bytes, as two halves.
constexpr bool is_in_halves(DType dtype) {
  return int(dtype) >= kNumDTypes;
}

// A row of an operand: a View that can only be stored to.
struct OperandRow {
  u8* data;
  DType dtype;  // or kSplit, or kScaledHalves

  void store(Index i, float value) const {
    if (!is_in_halves(dtype)) return store_element(dtype, data, i.at, value);
    u8* at = data + 4 * i64(i.at);
    const u32 inside = u32(reinterpret_cast<u64>(at)) & 31;
    if (dtype == kScaledHalves) {
      u16* high = reinterpret_cast<u16*>(at - inside) + inside / 4;
      const ScaledHalves halves(value, 0.0f);
      high[0] = u16(halves.high), high[8] = u16(halves.low);
      return;
    }
    u16* high = reinterpret_cast<u16*>(at - inside) + split_place(i32(inside / 4));
    const SplitBf16 halves(value, 0.0f);
    high[0] = u16(halves.high), high[8] = u16(halves.low);
  }
  void store_pair(Index i, float first, float second) const {
    store(i + i.at, first);
    store(i + (i.at + 1), second);
  }
  OperandRow from(i64 j) const { return {data + j * (is_in_halves(dtype) ? 4 : size_of(dtype)), dtype}; }
};

// True if a row, in memory or of an operand, can be loaded or stored in octets.
template <class Row>
inline bool in_octets(const Row& row) {
  return row.dtype != DType::kI32 && row.dtype != DType::kU8 && reinterpret_cast<u64>(row.data) % 16 == 0;
}
inline void store_octet(const Octet& octet, const View& row, i32 at) {
  octet.store(row, at);
}
inline void store_octet(const Octet& octet, const OperandRow& row, i32 at) {
  if (!is_in_halves(row.dtype)) return octet.store({row.data, row.dtype}, at);
  uint4* to = reinterpret_cast<uint4*>(row.data) + 2 * at;
  const float* v = octet.value;
  if (row.dtype == kScaledHalves) {
    const ScaledHalves a(v[0], v[1]), b(v[2], v[3]), c(v[4], v[5]), d(v[6], v[7]);
    to[0] = {a.high, b.high, c.high, d.high};
    to[1] = {a.low, b.low, c.low, d.low};
    return;
  }
  const SplitBf16 a(v[0], v[1]), b(v[2], v[3]), c(v[4], v[5]), d(v[6], v[7]);
  to[0] = {a.high, c.high, b.high, d.high};
  to[1] = {a.low, c.low, b.low, d.low};
}

// True if a weight of the kernel's calls has codes.
constexpr bool kReadsCodes = kUses[int(DType::kF8E4M3)] || kUses[int(DType::kI4)];

// A value of a coded panel: code * scale, rounded to the weight's type.
inline float load_code(const Weight& w, const u8* panel, i32 r, i32 k) {
  const i64 place = w.place(r, k);
  float code, next;
  if (w.coding.code == Code::kI4) {
    const i32 both = panel[place / 2] << 24;
    code = float((place % 2 == 0 ? both << 4 : both) >> 28);
  } else {
    arch::from_e4m3(panel[place], code, next);
  }
  return round_to(w.data.dtype, code * *reinterpret_cast<const float*>(panel + w.scale_place(r, k)));
}

struct WeightRow {
  const Weight& w;
  i32 row;

  float load(Index i) const {
    const i32 panel = row / w.panel_rows * w.slices() + i.at / w.slice_cols();
    if constexpr (kReadsCodes)
      if (w.is_coded()) return load_code(w, w.data.data + w.table[panel], row % w.panel_rows, i.at);
    return load_element(w.data.dtype, w.data.data + w.table[panel],
                        w.place(row % w.panel_rows, i.at % w.slice_cols()));
  }
};

// A matrix on chip: a fragment, or the memory of an operand. Rows are `stride` bytes apart.
struct Plane {
  u8* data;
  DType dtype;
  i32 rows, cols, m0, n0;
  i64 stride;
  i32 mark;  // scratch that was taken before it, bytes

  View row(i32 m) const { return {data + m * stride, dtype}; }
};

struct Operand : Plane {
  OperandRow row(i32 m) const { return {data + m * stride, dtype}; }
  float element(i32 m, i32 k) const {
    if (!is_in_halves(dtype)) return Plane::row(m).get(k);
    const u16* eight = reinterpret_cast<const u16*>(data + m * stride + k / 8 * 32);
    if (dtype == kScaledHalves)
      return fma(from_f16(eight[k % 8]), kHighUnit, from_f16(eight[k % 8 + 8]) * kLowUnit);
    const u16* high = eight + split_place(k % 8);
    return from_bf16(high[0]) + from_bf16(high[8]);
  }
};

}  // namespace heddle::device
