// Block lists of the flash_attention family: which blocks of one side a block of the other side lists. Host and device include it:
// no standard headers.
#pragma once

#include "heddle/kit/attention/score.h"
#include "heddle/ops/flash_attention/attention_mask.h"

namespace heddle {

inline i32 blocks_of(i32 rows, i32 size) {
  return rows / size + (rows % size > 0 ? 1 : 0);  // any size, without an overflow
}

// One list. A number that is no block's is left out.
struct BlockList {
  const i32* listed = nullptr;  // null: there are no lists, and all rows are one block
  i32 count = 1;
  i32 size = 0;  // rows of a block

  // Rows of the n-th block of a side that has `rows`.
  AttentionRange range(i32 n, i32 rows) const {
    if (!listed) return {0, rows};
    const i32 block = listed[n];
    if (block < 0 || block >= blocks_of(rows, size)) return {0, 0};
    return {block * size, rows - block * size < size ? rows : (block + 1) * size};
  }
};

// The list that block `at` has. `counts`: [B or 1, H or 1, blocks]; `indices`: [B or 1, H or 1, blocks, most]. `size`: rows of a
// listed block.
template <class Block>
BlockList list_of(Block&& block, const Tensor& counts, const Tensor& indices, i32 batch, i32 head, i32 at,
                  i32 size) {
  if (!counts.exists()) return {};
  const i64 b = counts.size[0] == 1 ? 0 : batch, h = counts.size[1] == 1 ? 0 : head;
  const i32 count = block.ints(counts)[b * counts.stride[0] + h * counts.stride[1] + at],
            most = indices.size[3];
  return {block.ints(indices) + b * indices.stride[0] + h * indices.stride[1] + at * indices.stride[2],
          count < 0      ? 0
          : count < most ? count
                         : most,
          size};
}

// The end of the part of rows [begin, end) that has one list. `size`: of the blocks that have lists; 0: there are none.
inline i32 part_end(i32 begin, i32 end, i32 size) {
  return size > 0 && end - begin > size - begin % size ? begin + size - begin % size : end;
}

}  // namespace heddle
