// Sums over the rows of a matrix in parts, so that no sum depends on the tiling. Row r is in part r % P of P: what parts work on at
// a time then lies close together, which memory is faster for. Host and device include it: no standard headers.
#pragma once

#include "heddle/base/integer.h"

namespace heddle {

constexpr i32 kMostPartRows = 1024;  // a tile keeps something for each row

constexpr i32 kNarrowColumns = 512;
constexpr i32 kMostSharedColumns = 6144;
constexpr i32 kWideColumns = 8192;  // a wider row is cut over a cluster of CTAs (kit/rows/row_kernel.cpp)

// CTAs that a multiprocessor has at once, each with a part of a matrix of so many columns. Fewer of them keep less under way, and more
// are slower too (measured on an H100).
inline i32 parts_at_once(i32 columns, i32 at_work = 1, i32 element_bytes = 2) {
  // Where a row waits for the one before it, another CTA works: on an H200, the gradient of layer_norm over 24,576 x 5,120 in bf16 runs
  // at 3,650 GB/s with two CTAs, and at 3,250 with one.
  if (at_work > 1 && element_bytes == 2 && columns > 2048 && columns <= kMostSharedColumns)
    return columns <= 3072 ? 3 : 2;
  return columns <= kNarrowColumns ? 14 : columns <= 1024 ? 6 : columns <= 2048 ? 3 : columns <= 3072 ? 2 : 1;
}

// Parts that a GPU works on at once. How many clusters it has at once differs from card to card: one H200 had 36 of three CTAs, 28 of
// four and 20 of five, and one H100 had 32 of four. Parts of three and four come in one wave that both have, and others are many.
inline i32 parts_of_device(i64 cluster, i32 at_once) {
  constexpr i32 kProcessors = 132;
  return cluster == 3 ? 35 : cluster == 4 ? 28 : kProcessors * at_once;
}

// The number of waves of parts. Small CTAs of narrow rows are faster in some: on an H100, the gradients of
// norms of 1,048,576 x 128 by 1 to 16 %.
inline i32 waves_of_parts(i32 rows, i32 columns, i32 at_once) {
  constexpr i32 kMostWaves = 4, kEnoughRows = 64;
  const i32 some = columns > kNarrowColumns ? 1 : rows / kEnoughRows / at_once,
            least = rows == 0 ? 1 : i32(ceil_div(rows, i64(kMostPartRows) * at_once)),
            waves = some < kMostWaves ? some : kMostWaves;
  return waves > least ? waves : least;
}

// The most rows of a part: `asked`, or what suits a matrix [rows, columns] where that is 0: parts in whole waves, for the last wave
// would leave multiprocessors idle. All executors cut alike. `pieces`: rows have so many pieces of `columns`, each with CTAs of its own.
// `at_work`: rows of which a CTA needs elements at once.
inline i32 rows_of_part(i32 asked, i32 rows, i32 columns, i32 element_bytes, i32 pieces = 1,
                        i32 at_work = 1) {
  if (asked != 0) return asked;
  constexpr i32 kCtaBytes = 16 << 10;  // that a CTA of a cluster holds of a row
  const i64 cluster = columns > kWideColumns ? ceil_div(i64(columns) * element_bytes, kCtaBytes) : 1;
  const i32 at_once =
      i32(ceil_div(parts_of_device(cluster, parts_at_once(columns, at_work, element_bytes)), i64(pieces)));
  const i32 fewest = cluster == 1 ? 4 : cluster <= 4 ? 8 : 16;
  const i32 waves = waves_of_parts(rows, columns, at_once);
  const i32 each = i32(ceil_div(rows, waves * at_once));
  return each < fewest ? fewest : each;
}

// The rows part, part + parts, ... of a matrix: how many there are.
inline i32 rows_in_part(i32 rows, i32 parts, i32 part) {
  return i32(ceil_div(rows - part, parts));
}

}  // namespace heddle
