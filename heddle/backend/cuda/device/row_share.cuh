// Which elements of a row in registers a thread has (row_kernel.cuh): eights, or where rows are no words of 16 bytes every element
// that lies a team's threads apart, so that neighbouring threads read neighbouring elements.
#pragma once

#include "heddle/backend/cuda/device/row_kernel.cuh"

namespace heddle::device {

// One element, loaded and stored as it lies in memory, so that neighbours cost one address. load_element() loads words.
template <DType kType>
struct Single {
  using Raw = decltype([] {
    if constexpr (size_of(kType) == 4)
      return 0.0f;
    else
      return u16(0);
  }());

  static const Raw* at(const u8* row, i64 i) { return reinterpret_cast<const Raw*>(row) + i; }
  static Raw* at(u8* row, i64 i) { return reinterpret_cast<Raw*>(row) + i; }
  static float decode(Raw raw) {
    if constexpr (kType == DType::kF32) return raw;
    if constexpr (kType == DType::kBf16) return from_bf16(raw);
    if constexpr (kType == DType::kF16) return from_f16(raw);
  }
  static Raw encode(float value) {
    if constexpr (kType == DType::kF32) return value;
    if constexpr (kType == DType::kBf16) return to_bf16(value);
    if constexpr (kType == DType::kF16) return to_f16(value);
  }
};

// kCount elements that lie kApart apart, as they lie in memory, and as many of them as the row has; the others are 0. Those of eight
// elements are the same as an Eight to their user.
template <DType kType, i32 kApart, i32 kCount = 8>
struct Spread {
  typename Single<kType>::Raw raw[kCount] = {};
  i32 count = 0;

  // From element `at` of a row on.
  void load(const u8* row, i64 at, i32 columns) {
    count = count_from(at, columns);
    const auto* const from = Single<kType>::at(row, at);
#pragma unroll
    for (i32 i = 0; i < kCount; ++i)
      if (i < count) raw[i] = from[i * kApart];
  }
  void load_kept(const u8* row, i64 at, i32 columns) { load(row, at, columns); }
  void store(u8* row, i64 at, i32 columns) const {
    const i32 stored = count_from(at, columns);
    auto* const to = Single<kType>::at(row, at);
#pragma unroll
    for (i32 i = 0; i < kCount; ++i)
      if (i < stored) to[i * kApart] = raw[i];
  }
  float get(i32 i) const { return Single<kType>::decode(raw[i]); }
  bool has(i32 i) const { return i < count; }
  // make(i): the value of element i.
  template <class Make>
  static Spread of(Make&& make) {
    Spread made;
#pragma unroll
    for (i32 i = 0; i < kCount; ++i) made.raw[i] = Single<kType>::encode(make(i));
    return made;
  }

 private:
  static i32 count_from(i64 at, i32 columns) { return (columns - i32(at) + kApart - 1) / kApart; }
};

// Rows cut into pieces of some columns, each of which is a row of its own. The last piece of a row may have fewer.
struct Pieces {
  i32 columns, of_row;

  Pieces(const Tensor& matrix, i32 columns)
      : columns(columns), of_row((matrix.size[1] + columns - 1) / columns) {}
  i32 row(i32 piece) const { return piece / of_row; }
  i32 first(i32 piece) const { return piece % of_row * columns; }  // its first column
  // The columns of a matrix that one piece of each row has.
  Tensor of(Tensor matrix, i32 first) const {
    matrix.data += i64(first) * size_of(matrix.dtype);
    const i32 left = matrix.size[1] - first;
    matrix.size[1] = left < columns ? left : columns;
    return matrix;
  }
};

template <DType kType, i32 kApart>
struct WordOf {
  using Type = Spread<kType, kApart>;
};
template <DType kType>
struct WordOf<kType, 0> {
  using Type = Eight<kType>;
};

template <class Team, bool kLoose>
struct RowShare {
  template <DType kType>
  using Word = typename WordOf<kType, kLoose ? i32(Team::kThreadsOfRow) : 0>::Type;

  // f(n, at) for the words of a row of `columns` elements that the thread has; load(), store() of a Word take `at`.
  template <i32 kWords, class F>
  static void each(i32 columns, F&& f) {
    if constexpr (kLoose) {
#pragma unroll
      for (i32 n = 0; n < kWords; ++n)
        if (const i32 at = Team::thread() + n * 8 * i32(Team::kThreadsOfRow); at < columns) f(n, at);
    } else {
      Team::template each<kWords>(columns / 8, f);
    }
  }
};

}  // namespace heddle::device
