// Eight neighbouring elements of a row that begins anywhere, by way of the words of 16 bytes that they lie in. They are the elements of
// a Vec8, so sums have the same order wherever a row begins.
#pragma once

#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/rows/vec8.cuh"

namespace heddle::device {

// 32-bit word i of those at(0), at(1), ..., from byte `shift` < 16 on, a multiple of an element's bytes.
template <i32 kElementBytes, class At>
inline u32 shifted_word(u32 shift, i32 i, At&& at) {
  const auto by_four = [&](i32 n) { return (shift & 8) != 0 ? at(n + 2) : at(n); };
  const auto by_two = [&](i32 n) { return (shift & 4) != 0 ? by_four(n + 1) : by_four(n); };
  if constexpr (kElementBytes == 4)
    return by_two(i);
  else
    return u32((u64(by_two(i + 1)) << 32 | by_two(i)) >> (shift % 4 * 8));
}
inline u32 part_of(const uint4& word, i32 i) {
  return i == 0 ? word.x : i == 1 ? word.y : i == 2 ? word.z : word.w;
}

// The bytes from `shift` on of two words that follow each other.
template <i32 kElementBytes>
inline uint4 shifted(u32 shift, const uint4& first, const uint4& second) {
  const auto word = [&](i32 i) {
    return shifted_word<kElementBytes>(
        shift, i, [&](i32 n) { return n < 4 ? part_of(first, n) : part_of(second, n - 4); });
  };
  return {word(0), word(1), word(2), word(3)};
}

// Stores element i of a word.
template <i32 kBytes>
inline void store_bits(u8* to, const uint4& word, i32 i) {
  const u32 bits = part_of(word, i * kBytes % 16 / 4);
  if constexpr (kBytes == 4)
    *reinterpret_cast<u32*>(to) = bits;
  else
    *reinterpret_cast<u16*>(to) = u16(i % 2 == 0 ? bits : bits >> 16);
}

// Stores the words that a team has on chip, number `first` to `end` of a row of `bytes` bytes that begins anywhere, as the words of
// memory that they lie in.
template <i32 kElementBytes>
struct ShiftedRow {
  static constexpr i32 kParts = kElementBytes / 2;  // words of eight elements
  u8* row;
  i32 bytes, first, end;
  uint4* room;  // end - first words

  void keep(i32 eight, const uint4* words) const {
#pragma unroll
    for (i32 i = 0; i < kParts; ++i) room[eight * kParts - first + i] = words[i];
  }
  // After a barrier.
  void store(i32 eight) const {
#pragma unroll
    for (i32 i = 0; i < kParts; ++i) store_word(eight * kParts + i);
  }

 private:
  void store_word(i32 number) const {
    const i32 shift = i32(reinterpret_cast<u64>(row) % 16), head = 16 - shift;  // bytes
    const i32 left = bytes - 16 * number;
    const uint4 word = room[number - first];
    u8* const to = row + i64(16) * number;
    const bool is_whole = (number > first || shift == 0) && left >= head;
    // The next word stores the end of this one, unless it is another CTA's or the row ends in it.
    const bool has_end = number + 1 == end || left - 16 < head;
    if (is_whole) {
      const uint4 before = shift == 0 ? word : room[number - first - 1];
      arch::store_once(to - shift, shifted<kElementBytes>(u32(head) % 16, before, word));
    }
    if (is_whole && !has_end) return;
#pragma unroll
    for (i32 at = 0; at < 16; at += kElementBytes)
      if (at < left && (at < head ? !is_whole : has_end))
        store_bits<kElementBytes>(to + at, word, at / kElementBytes);
  }
};

// On chip, for the words that a CTA stores of a row at once.
template <i32 kWords>
inline uint4* shifted_room() {
  __shared__ uint4 words[kWords];
  return words;
}

// To its user this is a Vec8, but a row's last eight may have fewer elements; the others are 0.
// Team: the threads that have a row; each has at most kMost eights of it.
template <DType kType, class Team, i32 kMost>
struct ShiftedVec8 {
  static constexpr i32 kWords = size_of(kType) / 2, kBytes = size_of(kType), kOfThread = kMost;
  uint4 words[kWords + 1] = {};
  u32 shift = 0;  // bytes of the first word that are before the elements
  i32 count = 0;

  // The `at`-th eight of a row. It loads no word that has none of its elements: those of the last ones one by one.
  void load(const u8* row, i64 at, i32 columns) {
    const u8* const from = row + at * 8 * kBytes;
    count = columns - 8 * i32(at) < 8 ? columns - 8 * i32(at) : 8;
    if (count < 8) return load_few(from);
    shift = u32(reinterpret_cast<u64>(from)) % 16;
    const uint4* const first = reinterpret_cast<const uint4*>(from - shift);
#pragma unroll
    for (i32 i = 0; i < kWords; ++i) words[i] = first[i];
    if (shift > 0) words[kWords] = first[kWords];
  }
  void load_kept(const u8* row, i64 at, i32 columns) { load(row, at, columns); }
  // Shifts the elements once, when all loads are on their way, and not at each get().
  ShiftedVec8 settled() const {
    ShiftedVec8 made;
#pragma unroll
    for (i32 i = 0; i < kWords; ++i) made.words[i] = shifted<kBytes>(shift, words[i], words[i + 1]);
    made.count = count;
    return made;
  }
  // Keeps them on chip, for RowShare::finish().
  void store(u8* row, i64 at, i32 columns) const { on_chip(row, columns).keep(i32(at), words); }
  // Stores elements one by one, at once.
  void store_each(u8* row, i64 at, i32 columns) const {
#pragma unroll
    for (i32 i = 0; i < 8; ++i)
      if (8 * i32(at) + i < columns)
        store_bits<kBytes>(row + (at * 8 + i) * kBytes, words[i * kBytes / 16], i);
  }
  static ShiftedRow<kBytes> on_chip(u8* row, i32 columns) {
    constexpr i32 kOfTeam = i32(Team::kThreadsOfRow) * kMost * kWords;
    const auto part = Team::part_of((columns + 7) / 8);
    return {row, columns * kBytes, part.first * kWords, part.end * kWords,
            shifted_room<i32(Team::kTeams) * kOfTeam>() + Team::number() * kOfTeam};
  }
  float get(i32 i) const {
    const u32 bits =
        shifted_word<kBytes>(shift, i * kBytes / 4, [&](i32 n) { return part_of(words[n / 4], n % 4); });
    if constexpr (kType == DType::kF32) return __uint_as_float(bits);
    if constexpr (kType == DType::kBf16) return __uint_as_float(i % 2 == 0 ? bits << 16 : bits & 0xffff0000u);
    return from_f16(u16(i % 2 == 0 ? bits : bits >> 16));
  }
  bool has(i32 i) const { return i < count; }
  // make(i): the value of element i.
  template <class Make>
  static ShiftedVec8 of(Make&& make) {
    const Vec8<kType> whole = Vec8<kType>::of(make);
    ShiftedVec8 made;
#pragma unroll
    for (i32 i = 0; i < kWords; ++i) made.words[i] = whole.words[i];
    return made;
  }

 private:
  void load_few(const u8* from) {
    u32 bits[4 * kWords] = {};
#pragma unroll
    for (i32 i = 0; i < 8; ++i)
      if (i < count) {
        if constexpr (kBytes == 4)
          bits[i] = reinterpret_cast<const u32*>(from)[i];
        else
          bits[i / 2] |= u32(reinterpret_cast<const u16*>(from)[i]) << (i % 2 * 16);
      }
#pragma unroll
    for (i32 i = 0; i < kWords; ++i)
      words[i] = {bits[4 * i], bits[4 * i + 1], bits[4 * i + 2], bits[4 * i + 3]};
  }
};

}  // namespace heddle::device
