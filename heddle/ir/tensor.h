// Tensors as op arguments hold them: a place in a named buffer, sizes and strides. A program holds no
// addresses; an executor binds them when it loads the program. Host and device include it: no standard
// headers.
#pragma once

#include "heddle/base/dtype.h"
#include "heddle/base/types.h"

namespace heddle {

constexpr int kMaxRank = 4;
constexpr u32 kNoBuffer = 0xffffffffu;

// A slab: a whole tensor, or a regular part of one. The last dimension is contiguous (stride 1).
struct Tensor {
  u8* data = nullptr;      // bound address; null in a stored program
  u32 buffer = kNoBuffer;  // buffer of the graph or program
  DType dtype = DType::kF32;
  u8 rank = 0;
  u16 reserved = 0;
  i64 offset = 0;             // bytes from the beginning of the buffer
  i32 size[kMaxRank] = {};    // elements
  i64 stride[kMaxRank] = {};  // elements

  // A tensor in a program or graph exists by its buffer; a bound one, or one of a call without buffers, by
  // its address.
  bool exists() const { return buffer != kNoBuffer || data != nullptr; }
  // This avoids size[rank - 1]: a kernel's copy with known rank stays in registers only if it is never
  // indexed by the rank.
  i32 last() const { return rank > 3 ? size[3] : rank > 2 ? size[2] : rank > 1 ? size[1] : size[0]; }
};

// A matrix [rows, cols] as it lies in memory, row after row or, transposed, column after column: the operand of a
// product of two matrices. Its elements are floats, or codes of 8 or 4 bits:
//   element = scale * (code - zero)
// Scales belong to the rows of `data`, and to groups of adjacent columns there: element (r, c) of data [R, C] takes
// scales[r, c / (C / G)] of scales [R, G], or of scales [1, G] for all rows. A matrix without scales has scale 1.
struct Matrix {
  Tensor
      data;  // [rows, cols]; transposed: [cols, rows]. The even element of an i4 pair has the low four bits
  Tensor scales;  // f32; optional
  Tensor zeros;   // like scales; optional
  bool transposed = false;

  // These index no size by a condition: a kernel's copy stays in registers only so.
  i32 rows() const { return transposed ? data.size[1] : data.size[0]; }
  i32 cols() const { return transposed ? data.size[0] : data.size[1]; }
  // Where `values`, the scales or the zeros of data with `cols` columns, has the one of data[r, c], in elements.
  static i64 place_of(const Tensor& values, i32 cols, i32 r, i32 c) {
    const i64 row = values.size[0] == 1 ? 0 : r * values.stride[0];
    return row + (values.size[1] == 1 ? 0 : c / (cols / values.size[1]));
  }
};

// A tile's place: up to four coordinates, in the order of the op's axes. A range takes two, {begin, end}.
struct TileCoord {
  i32 at[4] = {};

  i32& operator[](int i) { return at[i]; }
  i32 operator[](int i) const { return at[i]; }
  bool operator==(const TileCoord&) const = default;
};

// The count of the step record that bounds the rows (the first range axis) of a call. Rows past it are dead.
// Executors clamp a tile to its live rows before they run its body, so bodies never see a dead row.
enum class LiveRows : u8 { kAll, kRows, kWanted };

}  // namespace heddle
