// Sums over the rows of a matrix in parts, so that no sum depends on the tiling. Host and device include it: no standard headers.
#pragma once

#include "heddle/base/integer.h"

namespace heddle {

constexpr i32 kMostPartRows = 1024;  // a tile keeps something for each row

// The rows of a part: `asked`, or what suits a matrix [rows, columns] where that is 0. More parts are more to add up; parts that are
// not as many as CTAs run at once leave some multiprocessors idle (measured on an H200). All executors cut alike.
inline i32 rows_of_part(i32 asked, i32 rows, i32 columns) {
  if (asked != 0) return asked;
  constexpr i32 kFewest = 16, kProcessors = 132;
  const i32 at_once = columns <= 1024 ? 14 : columns <= 2048 ? 4 : columns <= 4096 ? 2 : 1;
  const i32 each = i32(ceil_div(rows, kProcessors * at_once));
  return each < kFewest ? kFewest : each < kMostPartRows ? each : kMostPartRows;
}

}  // namespace heddle
