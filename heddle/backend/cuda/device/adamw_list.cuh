// A step of AdamW over the tensors of a list: each element is read once and written once. A warp takes a block of 256 elements, eight
// neighbours a thread. The bits are those of the host's pass (backend/cpu/simd_adamw.cpp).
#pragma once

#include "heddle/backend/cuda/device/adamw_list.h"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/value/value.cuh"

namespace heddle::device::adamw_list {

#include "heddle/tile/adamw_factors.cuh"

constexpr i32 kEight = 8;
constexpr u32 kNan = 0x7fc00000u;

inline bool is_nan(float x) {
  return x != x;
}

// Eight neighbouring elements as they lie in memory: words where all of them are there and lie on a word's bounds.
template <i32 kBytes>
struct Eight {
  u32 words[2 * kBytes] = {};

  static bool in_words(const u8* at, i32 count) {
    return count == kEight && reinterpret_cast<u64>(at) % (kBytes == 1 ? 8 : 16) == 0;
  }
  void load(const u8* from, i32 count) {
    if (in_words(from, count)) {
      if constexpr (kBytes == 1) {
        const uint2 word = *reinterpret_cast<const uint2*>(from);
        words[0] = word.x, words[1] = word.y;
      } else {
#pragma unroll
        for (i32 i = 0; i < kBytes / 2; ++i) {
          const uint4 word = reinterpret_cast<const uint4*>(from)[i];
          words[4 * i] = word.x, words[4 * i + 1] = word.y, words[4 * i + 2] = word.z,
                    words[4 * i + 3] = word.w;
        }
      }
      return;
    }
#pragma unroll
    for (i32 i = 0; i < kEight; ++i) {
      if (i >= count) continue;
      if constexpr (kBytes == 4) set(i, reinterpret_cast<const u32*>(from)[i]);
      if constexpr (kBytes == 2) set(i, reinterpret_cast<const u16*>(from)[i]);
      if constexpr (kBytes == 1) set(i, from[i]);
    }
  }
  void store(u8* to, i32 count) const {
    if (in_words(to, count)) {
      if constexpr (kBytes == 1) {
        *reinterpret_cast<uint2*>(to) = uint2{words[0], words[1]};
      } else {
#pragma unroll
        for (i32 i = 0; i < kBytes / 2; ++i)
          reinterpret_cast<uint4*>(to)[i] =
              uint4{words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]};
      }
      return;
    }
#pragma unroll
    for (i32 i = 0; i < kEight; ++i) {
      if (i >= count) continue;
      if constexpr (kBytes == 4) reinterpret_cast<u32*>(to)[i] = get(i);
      if constexpr (kBytes == 2) reinterpret_cast<u16*>(to)[i] = u16(get(i));
      if constexpr (kBytes == 1) to[i] = u8(get(i));
    }
  }
  u32 get(i32 i) const {
    if constexpr (kBytes == 4) return words[i];
    if constexpr (kBytes == 2) return words[i / 2] >> 16 * (i % 2) & 0xffffu;
    return words[i / 4] >> 8 * (i % 4) & 0xffu;
  }
  void set(i32 i, u32 bits) {
    if constexpr (kBytes == 4) words[i] = bits;
    if constexpr (kBytes == 2) words[i / 2] |= bits << 16 * (i % 2);
    if constexpr (kBytes == 1) words[i / 4] |= bits << 8 * (i % 4);
  }
};

template <DType kType>
void widen(float* to, const u8* from, i32 count) {
  constexpr i32 kBytes = kType == DType::kF32 ? 4 : 2;
  Eight<kBytes> stored;
  stored.load(from, count);
#pragma unroll
  for (i32 i = 0; i < kEight; ++i) to[i] = __uint_as_float(stored.get(i) << (kBytes == 2 ? 16 : 0));
}

// 32 random bits of an element (the finalizer of MurmurHash3).
inline u32 random_bits(u32 seed, i64 element) {
  u32 h = u32(element) * 0x9e3779b1u + seed;
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  return h ^ h >> 16;
}

// A mean of eight neighbours: its elements in f32, as it is stored, and the codes and scale of the whole block.
template <AdamwState kState>
struct Mean {
  static constexpr i32 kBytes = kState == AdamwState::kF32 ? 4 : kState == AdamwState::kBf16 ? 2 : 1;
  float value[kEight];

  void load(const u8* from, i32 count, const float* scale, const float* values) {
    if constexpr (kState != AdamwState::kDynamic)
      return widen < kState == AdamwState::kF32 ? DType::kF32 : DType::kBf16 > (value, from, count);
    Eight<1> codes;
    codes.load(from, count);
    const float by = *scale;
#pragma unroll
    for (i32 i = 0; i < kEight; ++i) value[i] = i < count ? values[codes.get(i)] * by : 0.0f;
  }
  // `shift`: which half of an element's random bits is this mean's.
  void store(u8* to, i32 count, float* scale, const float* middles, u32 seed, i64 element, i32 shift) const {
    Eight<kBytes> stored;
    const float by = kState == AdamwState::kDynamic ? store_scale(scale, count) : 0.0f;
#pragma unroll
    for (i32 i = 0; i < kEight; ++i) {
      const u32 bits = __float_as_uint(value[i]);
      if constexpr (kState == AdamwState::kF32) stored.set(i, bits);
      if constexpr (kState == AdamwState::kBf16) {
        const u32 chance = random_bits(seed, element + i) >> shift & 0xffffu;
        stored.set(i, is_nan(value[i]) ? kNan >> 16 : (bits + chance) >> 16);
      }
      if constexpr (kState == AdamwState::kDynamic) stored.set(i, code_of(value[i] / by, middles));
    }
    if (count > 0) stored.store(to, count);
  }

 private:
  // Stores the largest magnitude of the warp's block; returns what its elements are divided by.
  float store_scale(float* scale, i32 count) const {
    float largest = 0;
#pragma unroll
    for (i32 i = 0; i < kEight; ++i)
      if (i < count) largest = greater(largest, abs(value[i]));
#pragma unroll
    for (i32 apart = 16; apart > 0; apart /= 2)
      largest = greater(largest, __shfl_xor_sync(0xffffffffu, largest, apart));
    if (lane() == 0) *scale = largest;
    return largest == 0 ? 1.0f : largest;
  }
  // NaN if either is one.
  static float greater(float a, float b) { return b > a || is_nan(b) ? b : a; }
  // The nearest value, the lower one of two that are as near. NaN takes the last.
  static u32 code_of(float share, const float* middles) {
    u32 code = 0;
#pragma unroll
    for (u32 step = 128; step > 0; step /= 2)
      if (!(share <= middles[code + step - 1])) code += step;
    return code;
  }
};

// The tensor of a chunk: the last one that begins at it or before.
inline const AdamwRow& row_of_chunk(const AdamwList& list, i64 chunk) {
  i32 low = 0;
  for (i32 high = list.count; low + 1 < high;) {
    const i32 middle = (low + high) / 2;
    (list.rows[middle].chunk <= chunk ? low : high) = middle;
  }
  return list.rows[low];
}

template <DType kParam, DType kGrad, AdamwState kState>
void step_block(const AdamwTensor& t, const Factors& factors, const float* codes, i64 block) {
  constexpr i32 kParamBytes = kParam == DType::kF32 ? 4 : 2, kGradBytes = kGrad == DType::kF32 ? 4 : 2;
  const i64 at = block * kAdamwBlock + i64(lane()) * kEight, rest = t.count - at;
  const i32 count = rest >= kEight ? kEight : rest > 0 ? i32(rest) : 0;
  const i64 from = count > 0 ? at : 0;  // a thread without elements reads none
  float grad[kEight];
  widen<kGrad>(grad, t.grad + from * kGradBytes, count);
  Eight<kParamBytes> param;
  param.load(t.param + from * kParamBytes, count);
  Eight<2> residual;
  if constexpr (kParam == DType::kBf16) residual.load(t.residual + from * 2, count);
  Mean<kState> m, v;
  m.load(t.m + from * Mean<kState>::kBytes, count, t.m_scale + block, codes);
  v.load(t.v + from * Mean<kState>::kBytes, count, t.v_scale + block, codes + 2 * kAdamwBlock);
  Eight<kParamBytes> new_param;
  Eight<2> new_residual;
#pragma unroll
  for (i32 i = 0; i < kEight; ++i) {
    const float g = grad[i] * factors.grad_scale;
    m.value[i] = factors.mean(m.value[i], g), v.value[i] = factors.square(v.value[i], g);
    u32 bits = param.get(i);
    if constexpr (kParam == DType::kBf16)
      bits = (bits << 16) + (residual.get(i) ^ 0x8000u) - 0x8000u;  // with its sign
    const float made = factors.param(__uint_as_float(bits), m.value[i], v.value[i]);
    bits = __float_as_uint(made);
    if constexpr (kParam == DType::kF32) {
      new_param.set(i, bits);
    } else {  // the nearest bf16, away from 0 of two that are as near, so that the rest fits an i16
      if (is_nan(made)) bits = kNan;
      const u32 upper = (bits + 0x8000u) >> 16;
      new_param.set(i, upper);
      new_residual.set(i, (bits - (upper << 16)) & 0xffffu);
    }
  }
  m.store(t.m + from * Mean<kState>::kBytes, count, t.m_scale + block, codes + kAdamwBlock, t.seed,
          t.first + at, 0);
  v.store(t.v + from * Mean<kState>::kBytes, count, t.v_scale + block, codes + 3 * kAdamwBlock, t.seed,
          t.first + at, 16);
  if (count == 0) return;
  new_param.store(t.param + from * kParamBytes, count);
  if constexpr (kParam == DType::kBf16) new_residual.store(t.residual + from * 2, count);
}

template <DType kParam, DType kGrad, AdamwState kState>
void step_chunk(const AdamwList& list) {
  __shared__ float codes[kState == AdamwState::kDynamic ? 4 * kAdamwBlock : 1];
  if constexpr (kState == AdamwState::kDynamic) {
    for (i32 i = i32(threadIdx.x); i < 4 * kAdamwBlock; i += i32(blockDim.x)) codes[i] = list.codes[i];
    __syncthreads();
  }
  const AdamwRow& row = row_of_chunk(list, blockIdx.x);
  const AdamwTensor& t = row.tensor;
  const Factors factors(list);
  const i64 first = (i64(blockIdx.x) - row.chunk) * kAdamwChunk,
            blocks = (t.count + kAdamwBlock - 1) / kAdamwBlock;
  for (i64 i = threadIdx.x / 32; i < kAdamwChunk && first + i < blocks; i += blockDim.x / 32)
    step_block<kParam, kGrad, kState>(t, factors, codes, first + i);
}

}  // namespace heddle::device::adamw_list
