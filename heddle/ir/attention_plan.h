// The attention plan says which rows and which positions each tile of attention handles. Ops compute it from
// the step record, and the engine computes from it which pages a step reads. Host and device include it: no
// standard headers.
#pragma once

#include "heddle/ir/step.h"

namespace heddle {

// The cut of attention into tiles. These are constants of the program. Borders depend only on a sequence's
// length, so neither the batch nor the number of workers changes a sum. With a window, the cut range begins
// at the last border of split_unit before everything that the block's rows see, and nothing before it is
// read.
struct AttentionCut {
  i32 block_rows = 1;    // rows of one sequence that a tile handles together
  i32 max_blocks = 1;    // row blocks in a step
  i32 max_splits = 1;    // a KV range is cut into at most this many parts
  i32 split_unit = 256;  // positions; the length of a part is a multiple of this
  i32 window = 0;        // positions that a row sees, including its own; 0: all

  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v("block_rows", s.block_rows), v("max_blocks", s.max_blocks);
    v("max_splits", s.max_splits), v("split_unit", s.split_unit), v("window", s.window);
  }
};

// One row block of a step: its rows, and how far back they look.
struct AttentionBlock {
  i32 sequence = -1;  // -1: dead
  i32 row_begin = 0, row_end = 0;
  i32 start = 0;   // positions of the sequence that are in the pages before this step
  i32 first = 0;   // none of the block's rows sees a position before this one; a multiple of split_unit
  i32 length = 0;  // start + rows of the sequence in this step up to row_end
  i32 splits = 0, split_size = 0;
};

// Length of a part of a KV range of `length` positions.
inline i32 split_size(const AttentionCut& cut, i32 length) {
  i32 units = (length + cut.split_unit - 1) / cut.split_unit;
  i32 each = (units + cut.max_splits - 1) / cut.max_splits;
  return (each > 0 ? each : 1) * cut.split_unit;
}

// For rows from `position` on, no tile reads pages before the returned position.
inline i32 first_read(const AttentionCut& cut, i32 position) {
  const i32 hidden = cut.window > 0 ? position + 1 - cut.window : 0;
  return hidden > 0 ? hidden / cut.split_unit * cut.split_unit : 0;
}

inline void cut_block(AttentionBlock& block, const AttentionCut& cut, const StepSequence& sequence, i32 start,
                      i32 first) {
  i32 last = first + cut.block_rows < sequence.row_count ? first + cut.block_rows : sequence.row_count;
  block.row_begin = sequence.row_begin + first;
  block.row_end = sequence.row_begin + last;
  block.start = start;
  block.length = start + last;
  block.first = first_read(cut, start + first);
  block.split_size = split_size(cut, block.length - block.first);
  block.splits = (block.length - block.first + block.split_size - 1) / block.split_size;
}

// The attention plan: maps a block index to its rows and KV range. It depends on the lengths alone.
inline AttentionBlock attention_block(const StepHost& host, const StepDevice& device, const AttentionCut& cut,
                                      i32 index) {
  AttentionBlock block;
  for (i32 s = 0; s < host.sequences; ++s) {
    const StepSequence& sequence = *host.sequence(s);
    i32 blocks = (sequence.row_count + cut.block_rows - 1) / cut.block_rows;
    if (index < blocks) {
      block.sequence = s;
      cut_block(block, cut, sequence, device.start(host.shape)[s], index * cut.block_rows);
      return block;
    }
    index -= blocks;
  }
  return block;
}

// Finds the block of a live row.
inline AttentionBlock attention_block_of_row(const StepHost& host, const StepDevice& device,
                                             const AttentionCut& cut, i32 row) {
  AttentionBlock block;
  block.sequence = host.row_sequence()[row];
  const StepSequence& sequence = *host.sequence(block.sequence);
  i32 first = (row - sequence.row_begin) / cut.block_rows * cut.block_rows;
  cut_block(block, cut, sequence, device.start(host.shape)[block.sequence], first);
  return block;
}

}  // namespace heddle
