// Sums over the rows of a matrix in parts, so that no sum depends on the tiling. Row r is in part r % P of P: what parts work on at
// a time then lies close together, which memory is faster for. Host and device include it: no standard headers.
#pragma once

#include "heddle/base/integer.h"

namespace heddle {

constexpr i32 kMostPartRows = 1024;  // a tile keeps something for each row

// CTAs that a multiprocessor has at once, each with a part of a matrix of so many columns. Parts that are not as many as CTAs run at
// once leave some multiprocessors idle; fewer of them keep less under way, and more are slower too (measured on an H100).
inline i32 parts_at_once(i32 columns) {
  return columns <= 512 ? 14 : columns <= 1024 ? 6 : columns <= 2048 ? 3 : columns <= 3072 ? 2 : 1;
}

// The most rows of a part: `asked`, or what suits a matrix [rows, columns] where that is 0. All executors cut alike.
inline i32 rows_of_part(i32 asked, i32 rows, i32 columns) {
  if (asked != 0) return asked;
  constexpr i32 kFewest = 16, kProcessors = 132;
  const i32 each = i32(ceil_div(rows, kProcessors * parts_at_once(columns)));
  return each < kFewest ? kFewest : each < kMostPartRows ? each : kMostPartRows;
}

// The rows part, part + parts, ... of a matrix: how many there are.
inline i32 rows_in_part(i32 rows, i32 parts, i32 part) {
  return i32(ceil_div(rows - part, parts));
}

}  // namespace heddle
