// Plans products on tensor cores: what an instruction multiplies (Atom), how a CTA's warps share a tile of them (MmaPlan), how the
// operands lie in shared memory, and how wgmma's descriptors name them.
// Read by host and device: no standard headers.
#pragma once

#include "heddle/tile/distribution.h"

namespace heddle::tile {

enum class MmaKind { kWarp, kWarpGroup };  // mma.sync; wgmma, four warps
enum class From { kRegisters, kChip };
enum class Major { kK, kOuter };  // elements next to each other in memory: along k, or along m or n

// One instruction: [m, n] += [m, k] [n, k]', sums in FP32.
struct Atom {
  MmaKind kind = MmaKind::kWarp;
  i32 m = 16, n = 8, element_bytes = 2;
  From left = From::kRegisters;
  Major left_major = Major::kK, right_major = Major::kK;

  constexpr i32 k() const { return depth_of(element_bytes); }
  constexpr i32 threads() const { return kind == MmaKind::kWarp ? 32 : 128; }
  constexpr bool exists() const {
    if (element_bytes != 1 && element_bytes != 2 && element_bytes != 4) return false;
    if (kind == MmaKind::kWarp) return m == 16 && n == 8 && left == From::kRegisters;
    // Only 16-bit operands may have their columns side by side, and only on chip.
    const bool k_major = left_major == Major::kK && right_major == Major::kK;
    if (left == From::kRegisters && left_major != Major::kK) return false;
    return m == 64 && n >= 8 && n <= 256 && n % 8 == 0 && (k_major || element_bytes == 2);
  }
  constexpr Distribution left_fragment() const {
    return kind == MmaKind::kWarp ? mma_left(element_bytes) : wgmma_left(element_bytes);
  }
  // Only mma.sync has one; wgmma reads the right operand from shared memory.
  constexpr Distribution right_fragment() const {
    hold(kind == MmaKind::kWarp, "the right operand of wgmma is in shared memory");
    return mma_right(element_bytes);
  }
  constexpr Distribution sums() const { return kind == MmaKind::kWarp ? mma_sums() : wgmma_sums(n); }
  // 32-bit registers of a thread.
  constexpr i32 sum_registers() const { return m * n / threads(); }
  constexpr i32 left_registers() const {
    return left == From::kChip ? 0 : m * k() * element_bytes / 4 / threads();
  }
  friend constexpr bool operator==(const Atom&, const Atom&) = default;
};

constexpr Atom mma_atom(i32 element_bytes) {
  return {.element_bytes = element_bytes};
}
constexpr Atom wgmma_atom(i32 n, i32 element_bytes, From left = From::kChip, Major left_major = Major::kK,
                          Major right_major = Major::kK) {
  return {MmaKind::kWarpGroup, 64, n, element_bytes, left, left_major, right_major};
}

// The layout of an operand's tile [rows, depth] in shared memory, in blocks of one span: a block has rows of
// `span` bytes, along k or, if kOuter, along m or n; 16-byte words are permuted by the row, so that 8 rows of
// a column fall into different banks. A tensor copy with the same span writes one block, and wgmma reads it.
struct OperandTile {
  i32 rows, depth, element_bytes;
  Major major = Major::kK;
  i32 span = 128;  // bytes: 128, 64, 32, 16 (not permuted)

  constexpr i32 span_elements() const { return span / element_bytes; }
  constexpr i32 bytes() const { return rows * depth * element_bytes; }
  constexpr bool exists() const {
    const i32 along = major == Major::kK ? depth : rows, across = major == Major::kK ? rows : depth;
    return along % span_elements() == 0 && across % 8 == 0;
  }
  constexpr i32 blocks() const { return (major == Major::kK ? depth : rows) / span_elements(); }
  // A block has so many, of `span` bytes each.
  constexpr i32 lines() const { return major == Major::kK ? rows : depth; }
  constexpr i32 block_bytes() const { return bytes() / blocks(); }
  // Element row + rows * k to its place, in elements, before words are permuted.
  constexpr Layout layout() const {
    const i32 wide = span_elements();
    if (major == Major::kK) return line(rows, wide).with(wide, 1).with(depth / wide, rows * wide);
    return line(wide, 1).with(rows / wide, depth * wide).with(depth, wide);
  }
  constexpr Swizzle swizzle() const { return swizzle_of_span(span).in_units(element_bytes); }
  // Where the 16-byte word of a row of a block lies in that row, in words.
  constexpr u32 permuted(u32 word, u32 row) const {
    return (word ^ row / (128 / u32(span))) % (u32(span) / 16);
  }
  // Sees this memory with k and m or n exchanged: rows of values are the depth of weights times values.
  constexpr OperandTile turned() const {
    return {depth, rows, element_bytes, major == Major::kK ? Major::kOuter : Major::kK, span};
  }
  constexpr i32 place(i32 row, i32 k) const { return swizzle()(layout()(row + rows * k)); }
};

// A descriptor of wgmma says this of a tile, in bytes (PTX ISA, "Matrix descriptor"; CuTe's canonical layouts have the same).
struct Descriptor {
  i32 lead, stride;  // LBO, SBO
  i32 span;

  // Without the address: a kernel adds (address & 0x3FFFF) >> 4.
  constexpr u64 bits() const {
    const u64 mode = span == 128 ? 1 : span == 64 ? 2 : span == 32 ? 3 : 0;
    return mode << 62 | u64(stride >> 4) << 32 | u64(lead >> 4) << 16;
  }
};
constexpr Descriptor descriptor(const OperandTile& tile) {
  const i32 eight_rows = 8 * tile.span;
  if (tile.major == Major::kK) {
    // Not permuted, lead goes from 8 elements of k to the next; permuted, it is not read.
    return {tile.span == 16 ? tile.rows * 16 : 16, eight_rows, tile.span};
  }
  // Not permuted, the two trade places: stride goes along m or n, and lead along k.
  if (tile.span == 16) return {eight_rows, tile.block_bytes(), 16};
  return {tile.block_bytes(), eight_rows, tile.span};
}
// Bytes from a tile's begin to its product number i along k. Permuted words keep their places: the span's bits of an address
// decide the permutation, and a step inside a span changes lower bits only.
constexpr i32 step_bytes(const OperandTile& tile, i32 i) {
  const i32 k = i * depth_of(tile.element_bytes);
  if (tile.major == Major::kOuter) return k * tile.span;
  return k / tile.span_elements() * tile.block_bytes() + k % tile.span_elements() * tile.element_bytes;
}
// Bytes from a tile's begin to a row of m or n that begins a block or, if kK, is a multiple of 8.
constexpr i32 row_bytes(const OperandTile& tile, i32 row) {
  if (tile.major == Major::kK) return row * tile.span;
  return row / tile.span_elements() * tile.block_bytes();
}

// A CTA's tile [rows, cols] of sums, depth elements of k at a time: `row_groups` x `col_groups` groups of an atom's threads.
struct MmaPlan {
  Atom atom;
  i32 rows, cols, depth;
  i32 row_groups = 1, col_groups = 1;
  i32 span = 128;

  constexpr i32 threads() const { return atom.threads() * row_groups * col_groups; }
  constexpr i32 row_atoms() const { return rows / (atom.m * row_groups); }  // a group's
  constexpr i32 col_atoms() const { return cols / (atom.n * col_groups); }
  constexpr i32 steps() const { return depth / atom.k(); }
  constexpr bool exists() const {
    return atom.exists() && rows % (atom.m * row_groups) == 0 && cols % (atom.n * col_groups) == 0 &&
           depth % atom.k() == 0 && right_tile().exists() &&
           (atom.left == From::kRegisters || left_tile().exists());
  }
  // For the whole tile: a thread's sums are those of its atoms, along rows first.
  constexpr Distribution sums() const {
    return atom.sums().repeat({row_atoms(), col_atoms()}, {row_groups, col_groups});
  }
  constexpr OperandTile left_tile() const { return {rows, depth, atom.element_bytes, atom.left_major, span}; }
  constexpr OperandTile right_tile() const {
    return {cols, depth, atom.element_bytes, atom.right_major, span};
  }
  constexpr i32 sum_registers() const { return atom.sum_registers() * row_atoms() * col_atoms(); }
  constexpr i32 left_registers() const { return atom.left_registers() * row_atoms() * steps(); }
  constexpr i32 stage_bytes() const {
    return right_tile().bytes() + (atom.left == From::kChip ? left_tile().bytes() : 0);
  }
};

}  // namespace heddle::tile
