// Which elements of a row in registers a thread has (row_kernel.cuh): eights, or where rows are no words of 16 bytes every element
// that lies a team's threads apart, so that neighbouring threads read neighbouring elements.
#pragma once

#include "heddle/backend/cuda/device/row_kernel.cuh"

namespace heddle::device {

// Eight elements that lie kApart apart, and as many of them as the row has; the others are 0. The same as an Eight to its user.
template <DType kType, i32 kApart>
struct Spread {
  float values[8] = {};
  i32 count = 0;

  // From element `at` of a row on.
  void load(const u8* row, i64 at, i32 columns) {
    count = count_from(at, columns);
#pragma unroll
    for (i32 i = 0; i < 8; ++i)
      if (i < count) values[i] = load_element(kType, row, at + i * kApart);
  }
  void load_kept(const u8* row, i64 at, i32 columns) { load(row, at, columns); }
  void store(u8* row, i64 at, i32 columns) const {
    const i32 stored = count_from(at, columns);
#pragma unroll
    for (i32 i = 0; i < 8; ++i)
      if (i < stored) store_element(kType, row, at + i * kApart, values[i]);
  }
  float get(i32 i) const { return values[i]; }
  bool has(i32 i) const { return i < count; }
  // make(i): the value of element i.
  template <class Make>
  static Spread of(Make&& make) {
    Spread made;
#pragma unroll
    for (i32 i = 0; i < 8; ++i) made.values[i] = round_to(kType, make(i));
    return made;
  }

 private:
  static i32 count_from(i64 at, i32 columns) { return (columns - i32(at) + kApart - 1) / kApart; }
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
