// Eight neighbouring elements in registers: words of 16 bytes, for kernels that are as fast as memory is. Elements that are read once
// pass the caches by.
#pragma once

#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/value/value.cuh"

namespace heddle::device {

// Eight neighbouring elements as they lie in memory.
template <DType kType>
struct Vec8 {
  static constexpr i32 kWords = size_of(kType) / 2;
  uint4 words[kWords] = {};

  // The `at`-th eight elements of a row. Two words of a sector of 32 bytes come by way of the L1 cache, which reads it once.
  void load(const u8* row, i64 at) {
    if constexpr (kWords == 1)
      words[0] = arch::load_constant(place(row, at));
    else
      load_kept(row, at);
  }
  // Loads those of a row that other threads read too.
  void load_kept(const u8* row, i64 at) {
#pragma unroll
    for (i32 i = 0; i < kWords; ++i) words[i] = place(row, at)[i];
  }
  // Copies the `at`-th eight elements of a row to shared memory asynchronously, word i to to(i).
  template <class Place>
  static void copy(const u8* row, i64 at, Place&& to) {
#pragma unroll
    for (i32 i = 0; i < kWords; ++i)
      if constexpr (kWords == 1)
        arch::copy_bytes(to(i), place(row, at), 16);
      else
        arch::copy_half_sector(to(i), place(row, at) + i);
  }
  // A row's number of elements matters where they do not fill eights (row_share.cuh).
  void load(const u8* row, i64 at, i32) { load(row, at); }
  void load_kept(const u8* row, i64 at, i32) { load_kept(row, at); }
  void store(u8* row, i64 at, i32) const { store(row, at); }
  static constexpr bool has(i32) { return true; }
  void store(u8* row, i64 at) const {
#pragma unroll
    for (i32 i = 0; i < kWords; ++i) arch::store_once(const_cast<uint4*>(place(row, at)) + i, words[i]);
  }
  float get(i32 i) const {
    if constexpr (kType == DType::kF32) return __uint_as_float(part(i));
    if constexpr (kType == DType::kBf16)
      return __uint_as_float(i % 2 == 0 ? part(i / 2) << 16 : part(i / 2) & 0xffff0000u);
    return from_f16(u16(i % 2 == 0 ? part(i / 2) : part(i / 2) >> 16));
  }
  // make(i): the value of element i.
  template <class Make>
  static Vec8 of(Make&& make) {
    u32 bits[4 * kWords];
#pragma unroll
    for (i32 i = 0; i < 4 * kWords; ++i) {
      if constexpr (kType == DType::kF32)
        bits[i] = u32(__float_as_int(make(i)));
      else
        bits[i] = pack_two(kType, make(2 * i), make(2 * i + 1));
    }
    Vec8 made;
#pragma unroll
    for (i32 i = 0; i < kWords; ++i)
      made.words[i] = {bits[4 * i], bits[4 * i + 1], bits[4 * i + 2], bits[4 * i + 3]};
    return made;
  }

 private:
  static const uint4* place(const u8* row, i64 at) {
    return reinterpret_cast<const uint4*>(row) + at * kWords;
  }
  u32 part(i32 i) const {
    const uint4& word = words[i / 4];
    return i % 4 == 0 ? word.x : i % 4 == 1 ? word.y : i % 4 == 2 ? word.z : word.w;
  }
};

inline u8* row_of(const Tensor& tensor, i32 row) {
  return tensor.data + i64(row) * tensor.stride[0] * size_of(tensor.dtype);
}

}  // namespace heddle::device
