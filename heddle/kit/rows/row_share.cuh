// Which elements of a row in registers a thread has (row_team.cuh). Eights are words of 16 bytes where elements have 16 bits. Two
// fours as far apart as the team is wide are such words where elements are f32, so that neighbouring threads have neighbouring words.
// Where rows are neither, a thread has eights that it shifts together of the words that they lie in (shifted_vec8.cuh), or every
// element that lies the team's threads apart.
#pragma once

#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/shifted_vec8.cuh"
#include "heddle/kit/rows/vec8.cuh"

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
// elements are the same as a Vec8 to their user.
template <DType kType, i32 kApart, i32 kCount = 8>
struct StridedVec {
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
  static StridedVec of(Make&& make) {
    StridedVec made;
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

// Two times four neighbouring elements, kApart fours apart, as they lie in memory; fours past the row's end are 0. The same as a Vec8
// to its user.
template <DType kType, i32 kApart>
struct SplitVec8 {
  using Four = decltype([] {
    if constexpr (size_of(kType) == 4)
      return uint4{};
    else
      return uint2{};
  }());
  Four fours[2] = {};
  i32 count = 0;

  // From element `at` of a row on.
  void load(const u8* row, i64 at, i32 columns) {
    count = count_from(at, columns);
#pragma unroll
    for (i32 n = 0; n < 2; ++n)
      if (n < count) {
        if constexpr (size_of(kType) == 4)
          fours[n] = arch::load_constant(place(row, at, n));
        else
          fours[n] = *place(row, at, n);
      }
  }
  // Loads those of a row that other threads read too.
  void load_kept(const u8* row, i64 at, i32 columns) {
    count = count_from(at, columns);
#pragma unroll
    for (i32 n = 0; n < 2; ++n)
      if (n < count) fours[n] = *place(row, at, n);
  }
  void store(u8* row, i64 at, i32 columns) const {
    const i32 stored = count_from(at, columns);
#pragma unroll
    for (i32 n = 0; n < 2; ++n)
      if (n < stored) {
        Four* const to = const_cast<Four*>(place(row, at, n));
        if constexpr (size_of(kType) == 4)
          arch::store_once(to, fours[n]);
        else
          *to = fours[n];
      }
  }
  float get(i32 i) const {
    const Four& four = fours[i / 4];
    if constexpr (kType == DType::kF32) {
      return __uint_as_float(i % 4 == 0 ? four.x : i % 4 == 1 ? four.y : i % 4 == 2 ? four.z : four.w);
    } else {
      const u32 two = i % 4 < 2 ? four.x : four.y;
      if constexpr (kType == DType::kBf16) return __uint_as_float(i % 2 == 0 ? two << 16 : two & 0xffff0000u);
      return from_f16(u16(i % 2 == 0 ? two : two >> 16));
    }
  }
  bool has(i32 i) const { return i / 4 < count; }
  // make(i): the value of element i.
  template <class Make>
  static SplitVec8 of(Make&& make) {
    SplitVec8 made;
#pragma unroll
    for (i32 n = 0; n < 2; ++n) {
      const i32 i = 4 * n;
      if constexpr (kType == DType::kF32)
        made.fours[n] = {__float_as_uint(make(i)), __float_as_uint(make(i + 1)), __float_as_uint(make(i + 2)),
                         __float_as_uint(make(i + 3))};
      else
        made.fours[n] = {pack_two(kType, make(i), make(i + 1)), pack_two(kType, make(i + 2), make(i + 3))};
    }
    return made;
  }

 private:
  static i32 count_from(i64 at, i32 columns) {
    return i32(at) + 4 * kApart < columns ? 2 : i32(at) < columns;
  }
  static const Four* place(const u8* row, i64 at, i32 n) {
    return reinterpret_cast<const Four*>(row + at * size_of(kType)) + n * kApart;
  }
};

// The way threads share a row (kit/rows/row_kernel.cpp chooses it).
constexpr i32 kVec8 = 0, kElements = 1, kSplitVec8 = 2, kShifted = 3;

template <DType kType, i32 kShare, class Team, i32 kMost>
struct WordOf {
  using Type = StridedVec<kType, i32(Team::kThreadsOfRow)>;
};
template <DType kType, class Team, i32 kMost>
struct WordOf<kType, kVec8, Team, kMost> {
  using Type = Vec8<kType>;
};
template <DType kType, class Team, i32 kMost>
struct WordOf<kType, kSplitVec8, Team, kMost> {
  using Type = SplitVec8<kType, i32(Team::kThreadsOfRow)>;
};
template <DType kType, class Team, i32 kMost>
struct WordOf<kType, kShifted, Team, kMost> {
  using Type = ShiftedVec8<kType, Team, kMost>;
};

// kMost: words of a row that a thread has at most, which kShifted must know.
template <class Team, i32 kShare, i32 kMost = 0>
struct RowShare {
  static constexpr i32 kThreads = i32(Team::kThreadsOfRow);
  static constexpr bool kWaits = kShare == kShifted;  // stores, for finish()
  template <DType kType>
  using Word = typename WordOf<kType, kShare, Team, kMost>::Type;

  // f(n, at) for the words of a row of `columns` elements that the thread has; load(), store() of a Word take `at`.
  template <i32 kWords, class F>
  static void each(i32 columns, F&& f) {
    if constexpr (kShare == kVec8) {
      Team::template each<kWords>(columns / 8, f);
    } else if constexpr (kShare == kShifted) {
      Team::template each<kWords>((columns + 7) / 8, f);
    } else {
      constexpr i32 kNeighbours = kShare == kSplitVec8 ? 4 : 1;
#pragma unroll
      for (i32 n = 0; n < kWords; ++n)
        if (const i32 at = kNeighbours * Team::thread() + n * 8 * kThreads; at < columns) f(n, at);
    }
  }

  // Words whose loads are on their way, before they are used more than once.
  template <class Word, i32 kWords>
  static void settle(Word (&words)[kWords]) {
    if constexpr (kWaits)
#pragma unroll
      for (Word& word : words) word = word.settled();
  }

  // Ends the stores of a row. Shifted words wait on chip for it, until all of the team have stored theirs; the team meets before it
  // stores again.
  template <DType kType>
  static void finish(u8* row, i32 columns) {
    if constexpr (kWaits) {
      Team::sync();
      const auto words = Word<kType>::on_chip(row, columns);
      each<Word<kType>::kOfThread>(columns, [&](i32, i32 at) { words.store(at); });
    }
  }
};

// A thread's words of what a CTA maps of one tensor.
template <class Word, i32 kWords>
struct PartWords {
  const u8* from;
  Word words[kWords];
};

}  // namespace heddle::device
