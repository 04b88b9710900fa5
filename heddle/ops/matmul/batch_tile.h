// Tiles of products of batches. Host and device include it: no standard headers.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

// Number t of the blocks of rows of all products.
template <class Args>
struct BatchTile {
  static constexpr i32 kRows = 128;
  i32 batch, begin, end;  // rows

  static i32 in_batch(const Args& a) { return (a.rows() - 1) / kRows + 1; }
  BatchTile(const Args& a, i32 t)
      : batch(t / in_batch(a)),
        begin(t % in_batch(a) * kRows),
        end(a.rows() - begin < kRows ? a.rows() : begin + kRows) {}
};

}  // namespace heddle
