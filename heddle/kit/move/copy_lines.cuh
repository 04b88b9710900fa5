// Copies lines of a matrix that begin anywhere to lines that begin at multiples of 16 bytes, which bulk copies can bring.
#pragma once

#include "heddle/kit/rows/shifted_vec8.cuh"

namespace heddle::device {

// Word `number` of a line of `bytes` bytes, of which it reads nothing beyond the end. The other bytes are 0.
template <i32 kElementBytes>
inline uint4 word_of_elements(const u8* line, i32 number, i32 bytes) {
  constexpr i32 kBits = 8 * kElementBytes;
  u32 parts[4] = {};
#pragma unroll
  for (i32 at = 0; at < 16; at += kElementBytes) {
    const u8* const from = line + 16 * i64(number) + at;
    if (16 * number + at >= bytes) continue;
    u32 element;
    if constexpr (kElementBytes == 1)
      element = *from;
    else if constexpr (kElementBytes == 2)
      element = *reinterpret_cast<const u16*>(from);
    else
      element = *reinterpret_cast<const u32*>(from);
    parts[at / 4] |= element << (at % 4 / kElementBytes * kBits % 32);
  }
  return {parts[0], parts[1], parts[2], parts[3]};
}

// All warps of the grid call it. line(i): where line i begins, a multiple of an element's bytes.
template <i32 kElementBytes, class Line>
inline void copy_lines(u32 lines, i32 bytes, u8* to, i64 pitch, Line&& line) {
  constexpr i32 kOfThread = 4, kOfWarp = 32 * kOfThread;  // words that are under way at once
  const i32 words = (bytes + 15) / 16;
  const u32 parts = u32(words + kOfWarp - 1) / kOfWarp;
  for (u32 p = (blockIdx.x * blockDim.x + threadIdx.x) / 32; p < lines * parts;
       p += gridDim.x * blockDim.x / 32) {
    const u32 number = p / parts;
    const i32 first = i32(p - number * parts) * kOfWarp + i32(threadIdx.x % 32);
    const u8* const from = line(number);
    const u32 shift = u32(reinterpret_cast<u64>(from) % 16);
    const uint4* const source = reinterpret_cast<const uint4*>(from - shift);
    uint4* const target = reinterpret_cast<uint4*>(to + number * pitch);
    const i32 whole =
        (bytes - (shift > 0 ? 16 : 0) + i32(shift)) / 16;  // words that lie in words of the line
    uint4 low[kOfThread], high[kOfThread];
#pragma unroll
    for (i32 i = 0; i < kOfThread; ++i) {
      const i32 at = first + 32 * i;
      if (at >= whole) continue;
      low[i] = source[at];
      if (shift > 0) high[i] = source[at + 1];
    }
#pragma unroll
    for (i32 i = 0; i < kOfThread; ++i) {
      const i32 at = first + 32 * i;
      if (at < whole)
        target[at] = shift > 0 ? shifted<kElementBytes>(shift, low[i], high[i]) : low[i];
      else if (at < words)
        target[at] = word_of_elements<kElementBytes>(from, at, bytes);
    }
  }
}

}  // namespace heddle::device
