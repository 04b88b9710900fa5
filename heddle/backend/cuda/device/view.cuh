// Rows in memory or on chip, as tile bodies see them (tile/block.h).
#pragma once

#include "heddle/backend/cuda/device/value.cuh"

namespace heddle::device {

struct Index {
  i32 at;
  friend Index operator+(Index i, i32 n) { return {i.at + n}; }
};

struct alignas(8) Pair {
  float first, second;
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
  i32 get_int(i32 j) const { return reinterpret_cast<const i32*>(data)[j]; }
  // Done by one thread: sync before another reads it.
  void set(i32 j, float value) const {
    if (arch::thread() == 0) set_here(j, value);
  }
  void set_int(i32 j, i32 value) const {
    if (arch::thread() == 0) reinterpret_cast<i32*>(data)[j] = value;
  }
  View from(i64 j) const { return {data + j * size_of(dtype), dtype}; }
  Strided every(i64 n) const;

 private:
  void set_here(i64 j, float value) const { store_element(dtype, data, j, value); }
};

struct Strided {
  View view;
  i64 step;

  float load(Index i) const { return view.from(i.at * step).get(0); }
  void store(Index i, float value) const { view.from(i.at * step).store(Index{0}, value); }
};

inline Strided View::every(i64 n) const {
  return {*this, n};
}

// Eight elements side by side, whose words are on their way before their dtype matters: zeros where nothing was loaded.
struct Octet {
  uint4 words[2] = {};
  float value[8];

  // The `at`-th eight of a row that begins at a word. Before decode().
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

struct WeightRow {
  const Weight& w;
  i32 row;

  float load(Index i) const {
    const i32 panel = row / w.panel_rows * w.slices() + i.at / w.slice_cols();
    return load_element(w.data.dtype, w.data.data + w.table[panel],
                        w.place(row % w.panel_rows, i.at % w.slice_cols()));
  }
};

// On chip: an operand or a fragment. Rows are `stride` bytes apart.
struct Matrix {
  u8* data;
  DType dtype;
  i32 rows, cols, m0, n0;
  i64 stride;
  i64 mark;  // what was taken of scratch before it

  View row(i32 m) const { return {data + m * stride, dtype}; }
};

}  // namespace heddle::device
