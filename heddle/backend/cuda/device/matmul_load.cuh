// Elements of a matrix as it lies in memory (ir/tensor.h), on their way on chip: floats, or codes with scales. A *unit* is 16
// adjacent elements of one row of the data. It is loaded as it lies, in words where it is whole and aligned, and decoded when it
// is stored, so that loads are under way while products are computed.
#pragma once

#include "heddle/backend/cuda/device/team.cuh"
#include "heddle/ir/product.h"
#include "heddle/kit/arch/numbers.cuh"

namespace heddle::device {

constexpr i32 kUnit = 16;  // elements

// One side of a tile of a product: rows [first, last) of a, or columns of b, and all of k.
struct Side {
  Matrix matrix;
  i32 first, last;
  bool along_k;  // k runs along the rows of the data

  // The sizes of the part of the data that the tile reads.
  i32 end_row() const { return along_k ? last : matrix.data.size[0]; }
  i32 end_col() const { return along_k ? matrix.data.size[1] : last; }
  // Where the data has the elements at `across` rows of a, or columns of b, from the first, and at k.
  i32 row(i32 across, i32 k) const { return along_k ? first + across : k; }
  i32 col(i32 across, i32 k) const { return along_k ? k : first + across; }
  const u8* address(i32 r, i32 c) const {
    const i64 at = r * matrix.data.stride[0] + c;
    return matrix.data.data + (matrix.data.dtype == DType::kI4 ? at / 2 : at * size_of(matrix.data.dtype));
  }
};

// Scales, or zeros, of a matrix.
struct Scales {
  Tensor values;
  i32 cols;  // the data has

  // True if a unit that begins at column c has one value.
  bool is_one(i32 c) const {
    const i32 groups = values.size[1];
    return groups == 1 || (c % kUnit == 0 && cols / groups % kUnit == 0);
  }
  float load(i32 r, i32 c) const {
    return reinterpret_cast<const float*>(values.data)[Matrix::place_of(values, cols, r, c)];
  }
};

// Loads the low bits of an element's word: 16 bits, or 8, which may be two codes.
inline u32 load_bits(const u8* at, i32 bytes) {
  return bytes == 1   ? u32(*at)
         : bytes == 2 ? u32(*reinterpret_cast<const u16*>(at))
                      : *reinterpret_cast<const u32*>(at);
}

// Four codes of a word, as floats. An integer's bits, with the sign turned over, become the mantissa of 2^23.
__forceinline__ void decode_four(DType dtype, u32 bits, float (&v)[4]) {
  constexpr u32 kTwoTo23 = 0x4b000000;
  if (dtype == DType::kF8E4M3) {
    arch::from_e4m3(bits, v[0], v[1]);
    arch::from_e4m3(bits >> 16, v[2], v[3]);
    return;
  }
  const u32 turned = bits ^ (dtype == DType::kI8 ? 0x80808080u : 0x8888u);
#pragma unroll
  for (i32 i = 0; i < 4; ++i) {
    if (dtype == DType::kF8E5M2)
      v[i] = from_f16(u16((bits >> 8 * i & 0xff) << 8));
    else if (dtype == DType::kI8)
      v[i] = __uint_as_float((turned >> 8 * i & 0xff) | kTwoTo23) - (8388608.0f + 128.0f);
    else
      v[i] = __uint_as_float((turned >> 4 * i & 15) | kTwoTo23) - (8388608.0f + 8.0f);
  }
}

// kWords: 8 for elements of 16 bits or fewer, 16 for f32.
template <i32 kWords>
struct Unit {
  u32 bits[kWords];
  float scale, zero;

  // Loads the unit at data[r, c]. It reads no memory outside the tile's part of the data, and has zeros there.
  __forceinline__ void load(const Side& side, i32 r, i32 c) {
    const Matrix& matrix = side.matrix;
    const i32 count = count_of(side, r, c);
    load_elements(matrix.data.dtype, side.address(r, c), count);
    scale = 1, zero = 0;
    if (!matrix.scales.exists() || count == 0) return;
    const Scales scales{matrix.scales, matrix.data.size[1]};
    if (scales.is_one(c)) scale = scales.load(r, c);
    if (!matrix.zeros.exists()) return;
    const Scales zeros{matrix.zeros, matrix.data.size[1]};
    if (zeros.is_one(c)) zero = zeros.load(r, c);
  }

  // True if the elements are multiplied as they lie.
  static bool is_plain(const Matrix& matrix, DType product) {
    return matrix.data.dtype == product && !matrix.scales.exists();
  }
  // Elements 4 g to 4 g + 3 of the unit that was loaded from data[r, c], scaled.
  __forceinline__ void decode(const Side& side, i32 r, i32 c, i32 g, float (&four)[4]) const {
    const Matrix& matrix = side.matrix;
    decode_bits(matrix.data.dtype, g, four);
    if (matrix.scales.exists()) apply_scales(matrix, r, c + 4 * g, count_of(side, r, c) - 4 * g, c, four);
  }

 private:
  static i32 count_of(const Side& side, i32 r, i32 c) {
    return r < side.end_row() ? max(0, min(side.end_col() - c, kUnit)) : 0;
  }

  template <class Word>
  __forceinline__ bool load_words(const u8* from, i32 words) {
    constexpr i32 kPer = i32(sizeof(Word) / 4);
    if (reinterpret_cast<u64>(from) % sizeof(Word) != 0) return false;
#pragma unroll
    for (i32 w = 0; w < kWords / kPer; ++w) {
      if (w >= words / kPer) break;
      const Word word = reinterpret_cast<const Word*>(from)[w];
      bits[kPer * w] = word.x, bits[kPer * w + 1] = word.y;
      if constexpr (kPer == 4) bits[4 * w + 2] = word.z, bits[4 * w + 3] = word.w;
    }
    return true;
  }
  __forceinline__ void load_elements(DType dtype, const u8* from, i32 count) {
    const i32 words = dtype == DType::kI4 ? 2 : kUnit / 4 * size_of(dtype);
    if (count == kUnit && (words == 2 ? load_words<uint2>(from, 2) : load_words<uint4>(from, words))) return;
    // i4 come in pairs; the second one of the last pair may be outside.
    const i32 bytes = size_of(dtype), pair = dtype == DType::kI4 ? 2 : 1, per = 4 * pair / bytes;
#pragma unroll
    for (i32 w = 0; w < kWords; ++w) {
      bits[w] = 0;
      for (i32 i = 0; i < per; i += pair)
        if (w * per + i < count)
          bits[w] |= load_bits(from + (w * per + i) / pair * bytes, bytes) << (i * (32 / per));
    }
    if (pair == 2 && count % 2 != 0) set_last_code(count);
  }
  // Clears code `count` of i4.
  void set_last_code(i32 count) {
    const u32 all = ~0u;
#pragma unroll
    for (i32 i = 0; i < 2; ++i)
      if (i == count / 8) bits[i] &= all >> (32 - count % 8 * 4);
  }

  __forceinline__ void decode_bits(DType dtype, i32 g, float (&v)[4]) const {
    if constexpr (kWords == 16) {
      if (dtype == DType::kF32) {
#pragma unroll
        for (i32 i = 0; i < 4; ++i) v[i] = __uint_as_float(bits[4 * g + i]);
        return;
      }
    }
    if (dtype != DType::kBf16 && dtype != DType::kF16)
      return decode_four(dtype, dtype == DType::kI4 ? bits[g / 2] >> (g % 2 * 16) : bits[g], v);
#pragma unroll
    for (i32 i = 0; i < 2; ++i) {
      const u32 two = bits[2 * g + i];
      v[2 * i] = dtype == DType::kBf16 ? __uint_as_float(two << 16) : from_f16(u16(two));
      v[2 * i + 1] = dtype == DType::kBf16 ? __uint_as_float(two & 0xffff0000u) : from_f16(u16(two >> 16));
    }
  }
  // `left`: how many of the four elements, which begin at column c, are inside. begin: the unit's first column.
  __forceinline__ void apply_scales(const Matrix& matrix, i32 r, i32 c, i32 left, i32 begin,
                                    float (&v)[4]) const {
    const Scales scales{matrix.scales, matrix.data.size[1]}, zeros{matrix.zeros, matrix.data.size[1]};
    const bool one_scale = scales.is_one(begin), has_zeros = matrix.zeros.exists();
    const bool one_zero = !has_zeros || zeros.is_one(begin);
#pragma unroll
    for (i32 i = 0; i < 4; ++i) {
      if (i >= left) {
        v[i] = 0;
        continue;
      }
      const float by = one_scale ? scale : scales.load(r, c + i);
      if (has_zeros) v[i] -= one_zero ? zero : zeros.load(r, c + i);
      v[i] *= by;
    }
  }
};

// One element, as it is multiplied: number k of row `across` of a, or of column `across` of b.
__forceinline__ float element_of(const Matrix& matrix, DType product, bool along_k, i32 across, i32 k) {
  const i32 r = along_k ? across : k, c = along_k ? k : across;
  const DType dtype = matrix.data.dtype;
  const u32 stored = load_bits(Side{matrix, 0, 0, true}.address(r, c), size_of(dtype));
  const u32 bits = dtype == DType::kI4 ? stored >> (c % 2 * 4) : stored;
  float four[4] = {__uint_as_float(bits)};
  if (dtype == DType::kBf16)
    four[0] = from_bf16(u16(bits));
  else if (dtype == DType::kF16)
    four[0] = from_f16(u16(bits));
  else if (dtype != DType::kF32)
    decode_four(dtype, bits, four);
  float value = four[0];
  if (matrix.zeros.exists()) value -= Scales{matrix.zeros, matrix.data.size[1]}.load(r, c);
  if (matrix.scales.exists()) value *= Scales{matrix.scales, matrix.data.size[1]}.load(r, c);
  return round_to(product, value);
}

}  // namespace heddle::device
