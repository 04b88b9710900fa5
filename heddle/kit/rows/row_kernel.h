// Plans of whole kernels whose work is rows or single elements of matrices: as fast as memory is. An op
// says what it has (RowWork), and x_kernel.sm80.cuh does it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/ir/op.h"

namespace heddle {

// The cut of a call's work into CTAs.
enum class RowForm : u8 {
  kRows,       // a row in the registers of a warp or a CTA
  kParts,      // a CTA, or a cluster for wide rows, has the rows of one part, and keeps sums of them
  kPasses,     // a CTA goes along a row
  kElements,   // rows that lie end to end are one row, cut into stretches, however wide each is
  kStretches,  // stretches of rows, which stay rows
  kTiles,      // tiles of rows and columns, of elements of 16 bits
  kSquares,    // squares of 128 rows and columns, of elements of 16 bits
  kElementTiles,  // squares of 64 rows and columns, of elements of 16 or 32 bits, wherever rows begin (ElementKernel)
};

struct RowWork {
  RowForm form = RowForm::kElements;
  std::vector<const Tensor*>
      matrices;  // the first one's rows and columns are cut; tensors that do not exist are left out
  std::vector<const Tensor*> vectors;  // one element for each column
  std::vector<const Tensor*> sums;     // kParts: f32 [parts, columns], what a CTA adds up of its rows
  // kRows, kParts: rows are cut into pieces of so many columns, each a row of its own; 0: they are not.
  i32 piece = 0;
  i32 at_work = 1;             // kParts: rows of which a CTA needs elements at once
  bool takes_several = false;  // kParts, kRows: and several rows at a time (the kernel's constant `rows`)
  i32 row_units = 0;           // kElements: what a row is cut into, where that is not its eights
  bool maps = false;     // kElements: map_elements() does it, which takes any number of elements end to end
  bool of_body = false;  // and the tile body says the function (kit/value_kernel.cuh)
  std::string misfit = {};  // the op's own reason why the call does not fit
  i32 kind = -1;            // a constant of the kernel
  bool has_long = false;    // kRows: the file has a LongKernel for rows that registers do not hold
  // kParts: so many of the first matrices come by way of shared memory.
  // kRows: the file has a ClusterKernel too, which keeps the rows of so many of the first matrices in the shared memory of a
  // cluster, and so reads them once.
  i32 kept = 0;
  bool keeps_part = false;  // it may keep a part of longer rows
  // The kernel also takes rows that are no words of 16 bytes, one element at a time (its constant `share`, kit/rows/row_share.cuh).
  bool takes_loose = false;
  bool takes_shifted = false;   // and eights of them, which it shifts out of words (kShifted there)
  bool takes_fours = false;     // kRows: and two times four elements, which are words of f32
  bool takes_clusters = false;  // kRows: and rows that the registers of a cluster hold
  bool is_centred = false;      // kRows: a row's second sum waits for its first
  bool adds_up = true;          // the configuration decides the order of a sum
};

using RowRule = std::function<RowWork(const std::byte* args)>;

// Gives an op its kernel and the kernel's configurations: threads of a CTA and of a row, and how many times eight elements a
// thread has; for rows in a cluster, its CTAs. The default follows from columns, dtypes and how fast memory is, and never from
// the number of rows where it decides the order of a sum.
void set_row_kernel(OpSpec& op, const RowRule& rule);

// Gives an op whose tile body is a function of a value (tile/epilogue.cuh) a kernel that is made of it. `op` has its fields: one
// matrix or two of the same shape that are read, one that is written, and perhaps the choice `kind`.
void set_value_kernel(OpSpec& op);

}  // namespace heddle
