// Words of eight elements of states [B, H, rows, E], and decays of chunks.
#pragma once

#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/ops/sympow/chunk_tiles.h"

namespace heddle::device::state_words {

inline u8* at(const Tensor& tensor, i32 b, i32 h, i64 row, i32 column, DType type) {
  return tensor.data +
         (b * tensor.stride[0] + h * tensor.stride[1] + row * tensor.stride[2] + column) * size_of(type);
}
template <DType kType>
inline float value(const uint4& word, i32 i) {
  const u32 bits[4] = {word.x, word.y, word.z, word.w};
  const u32 half = i % 2 == 0 ? bits[i / 2] << 16 : bits[i / 2] & 0xffff0000u;
  return kType == DType::kBf16 ? __uint_as_float(half) : from_f16(u16(half >> 16));
}
template <DType kType>
inline uint4 pack(const float (&x)[8]) {
  static_assert(size_of(kType) == 2);
  return {pack_two(kType, x[0], x[1]), pack_two(kType, x[2], x[3]), pack_two(kType, x[4], x[5]),
          pack_two(kType, x[6], x[7])};
}
// The decay of a state over a chunk.
template <class Args>
inline float decay_of(const Args& a, const ChunkTiles& tiles, i32 b, i32 h, i32 chunk) {
  return a.l.exists() ? __expf(reinterpret_cast<const float*>(
                            a.l.data)[b * a.l.stride[0] + (tiles.chunk_end(chunk) - 1) * a.l.stride[1] + h])
                      : 1.0f;
}

}  // namespace heddle::device::state_words
