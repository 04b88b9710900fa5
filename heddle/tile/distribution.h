// Says which thread holds which elements of a tile, in which of its registers. A tile of rows x cols has elements
// row + rows * col. A thread's elements are numbered as they lie in its registers, the first in the lowest bits.
// The functions below are what instructions do (PTX ISA, "Matrix fragments" of mma, wgmma, ldmatrix, stmatrix), and device tests
// write and read back each thread and register. They are functions and not constants, because NVRTC would put a constant with
// member functions into memory.
// Read by host and device: no standard headers.
#pragma once

#include "heddle/tile/layout.h"

namespace heddle::tile {

struct Element {
  i32 row, col;
};

// A thread's elements: element(i) = begin + layout(i).
struct Slice {
  Layout layout;
  i32 begin;
  constexpr i32 operator()(i32 i) const { return begin + layout(i); }
};

struct Owner {
  i32 thread, index;
};

struct Distribution {
  Layout fragment,
      thread;  // a thread's element number, the thread: to what they add to the element of the tile
  i32 rows = 1, cols = 1;

  constexpr i32 each() const { return fragment.size(); }
  constexpr i32 threads() const { return thread.size(); }
  constexpr i32 operator()(i32 t, i32 i) const { return thread(t) + fragment(i); }
  constexpr Element element(i32 t, i32 i) const {
    const i32 at = (*this)(t, i);
    return {at % rows, at / rows};
  }
  constexpr Slice of(i32 t) const { return {fragment, thread(t)}; }
  // The number of threads that hold the same elements: modes of stride 0.
  constexpr i32 copies() const { return each() * threads() / (rows * cols); }
  // True if each element of the tile has copies() owners, and nothing else is held.
  constexpr bool covers() const {
    const Layout order = sorted(join(fragment, thread));
    i32 filled = 1;
    for (i32 i = 0; i < order.rank; ++i) {
      if (order.mode[i].stride != filled) return false;
      filled *= order.mode[i].shape;
    }
    return filled == rows * cols;
  }
  // The first thread that holds an element, and its number there. The distribution covers the tile: its modes are the digits of
  // an element.
  constexpr Owner owner(i32 element) const { return {digits(thread, element), digits(fragment, element)}; }
  // Neighbours along a row (a column) that a thread holds next to each other: how wide it may store its fragment.
  constexpr i32 widest_in_row() const { return fragment_run(rows); }
  constexpr i32 widest_in_column() const { return fragment_run(1); }
  // Repeated: `fragments` tiles along rows and then cols in the same thread, `groups` of them in further threads.
  constexpr Distribution repeat(Element fragments, Element groups) const;
  friend constexpr bool operator==(const Distribution&, const Distribution&) = default;

 private:
  static constexpr i32 digits(const Layout& modes, i32 element) {
    i32 index = 0, weight = 1;
    for (i32 i = 0; i < modes.rank; ++i) {
      const Mode& mode = modes.mode[i];
      if (mode.stride > 0) index += element / mode.stride % mode.shape * weight;
      weight *= mode.shape;
    }
    return index;
  }
  constexpr i32 fragment_run(i32 stride) const {
    const Layout few = coalesce(fragment);
    return few.mode[0].stride == stride ? few.mode[0].shape : 1;
  }
};

// Places the elements of a tile of `rows` rows in one of `to` rows.
constexpr Layout in_rows(const Layout& a, i32 rows, i32 to) {
  return compose(line(rows, 1).with(1 << 20, to), a);
}

constexpr Distribution Distribution::repeat(Element fragments, Element groups) const {
  Distribution more{in_rows(fragment, rows, rows * fragments.row * groups.row),
                    in_rows(thread, rows, rows * fragments.row * groups.row),
                    rows * fragments.row * groups.row, cols * fragments.col * groups.col};
  // Groups lie side by side inside a repetition, so that a group's tiles are as far apart as all groups are wide.
  more.fragment =
      more.fragment.with(fragments.row, rows * groups.row).with(fragments.col, more.rows * cols * groups.col);
  more.thread = more.thread.with(groups.row, rows).with(groups.col, more.rows * cols);
  return more;
}

// Operands of products: a register of 32 bits has 4 / element_bytes neighbours along k. A warp's lanes are 8 rows x 4 columns of
// registers, `k` a product's depth: 32 bytes. A tile's rows are those of m for the left operand, of n for the right one.
constexpr i32 depth_of(i32 element_bytes) {
  return 32 / element_bytes;
}
// mma.sync m16n8k(depth_of): the left operand [16, k].
constexpr Distribution mma_left(i32 element_bytes) {
  const i32 pack = 4 / element_bytes;
  return {line(pack, 16).with(2, 8).with(2, 16 * 4 * pack), line(4, 16 * pack).with(8, 1), 16, 8 * pack};
}
// The right operand [8, k]: rows of n.
constexpr Distribution mma_right(i32 element_bytes) {
  const i32 pack = 4 / element_bytes;
  return {line(pack, 8).with(2, 8 * 4 * pack), line(4, 8 * pack).with(8, 1), 8, 8 * pack};
}
// The sums [16, 8], FP32.
constexpr Distribution mma_sums() {
  return {line(2, 16).with(2, 8), line(4, 32).with(8, 1), 16, 8};
}
// wgmma m64: four warps have 16 rows each. Sums [64, n], FP32.
constexpr Distribution wgmma_sums(i32 n) {
  return {line(2, 64).with(2, 8).with(n / 8, 8 * 64), line(4, 2 * 64).with(8, 1).with(4, 16), 64, n};
}
// The left operand [64, k] in registers.
constexpr Distribution wgmma_left(i32 element_bytes) {
  const i32 pack = 4 / element_bytes;
  return {line(pack, 64).with(2, 8).with(2, 64 * 4 * pack), line(4, 64 * pack).with(8, 1).with(4, 16), 64,
          8 * pack};
}

// ldmatrix and stmatrix: `count` = 1, 2 or 4 matrices of 8 x 8 elements of 16 bits, next to each other as a tile [8, 8 count].
// Register i holds two elements of matrix i.
constexpr Distribution matrices(i32 count) {
  return {line(2, 8).with(count, 64), line(4, 16).with(8, 1), 8, 8 * count};
}
constexpr Distribution matrices_transposed(i32 count) {
  return {line(2, 1).with(count, 64), line(4, 2).with(8, 8), 8, 8 * count};
}
// The element at which the row begins whose address a lane gives; lanes from 8 count on are not asked.
constexpr Layout matrix_rows(i32 count) {
  return line(8, 1).with(count, 64);
}

}  // namespace heddle::tile
