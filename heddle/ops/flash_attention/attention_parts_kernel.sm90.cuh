// Parts of the whole kernels of the family: elements of any float, sequences of different lengths, values on chip.
#pragma once

#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/attention/score.h"
#include "heddle/kit/kernel.cuh"
#include "heddle/ops/flash_attention/attention_mask.h"

namespace heddle::device::attention_parts {

template <DType kType>
inline float load_element(const u8* from, i64 at) {
  if constexpr (kType == DType::kF32) return reinterpret_cast<const float*>(from)[at];
  const u16 bits = reinterpret_cast<const u16*>(from)[at];
  return kType == DType::kBf16 ? __uint_as_float(u32(bits) << 16) : arch::from_f16(bits);
}

// The pair so many queries and keys after `first`, in the sequence. Where that has none, the indices are the last ones. Each float
// takes one addition.
inline ScorePlace place_in(const AttentionSequence& s, const ScorePlace& first, i32 queries, i32 keys) {
  const i32 query = min(first.query + queries, s.query_end - 1), key = min(first.key + keys, s.key_end - 1);
  return {first.batch,
          first.head,
          query,
          key,
          first.query_number + float(queries),
          first.key_number + float(keys),
          first.apart + float(queries - keys)};
}

// As list_of reads lists.
struct Memory {
  const i32* ints(const Tensor& tensor) const { return reinterpret_cast<const i32*>(tensor.data); }
};

// The parts of one side, queries or keys: the rows before the first sequence, the sequences, and the rows after the last.
struct Parts {
  const i32 *own, *other;
  i32 count, rows, other_rows;

  static Parts of(const Tensor& own, const Tensor& other, i32 rows, i32 other_rows) {
    return {reinterpret_cast<const i32*>(own.data), reinterpret_cast<const i32*>(other.data), own.size[0] + 1,
            rows, other_rows};
  }
  static i32 clamp(i32 at, i32 most) { return at < 0 ? 0 : at > most ? most : at; }
  i32 begin(i32 n) const { return n == 0 ? 0 : n == count ? rows : clamp(own[n - 1], rows); }
  // The number of the first tile of part n, which leaves each part enough numbers. Some tiles stay without rows.
  i32 first_tile(i32 n, i32 tile_rows) const { return begin(n) / tile_rows + n; }
  i32 part_of(i32 tile, i32 tile_rows) const {
    i32 low = 0, high = count - 1;
    while (low < high) {
      const i32 middle = (low + high + 1) / 2;
      if (first_tile(middle, tile_rows) <= tile)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }
  bool is_sequence(i32 n) const { return n > 0 && n < count - 1; }
  AttentionRange range(i32 n) const { return {begin(n), begin(n + 1)}; }
  AttentionRange other_range(i32 n) const {
    if (!is_sequence(n)) return {0, 0};
    const i32 first = clamp(other[n - 1], other_rows);
    return {first, max(first, clamp(other[n], other_rows))};
  }
};

}  // namespace heddle::device::attention_parts
