// Rows in memory or on chip, as tile bodies see them (tile/block.h).
#pragma once

#include "heddle/backend/cuda/device/value.cuh"

namespace heddle::device {

struct Index {
  i32 at;
  friend Index operator+(Index i, i32 n) { return {i.at + n}; }
};

struct Pair {
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
