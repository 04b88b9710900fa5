// The panel of two rows of codes that a GPU's ring streams, with its scales. Its order is that of the threads that read it
// (backend/cuda/device/matvec_codes.cuh). Host and device include it: no standard headers.
//
// A warp multiplies a block of 128 columns at a time; the last block is filled up. A lane has eight adjacent codes, a piece, of every 32
// columns of one row: those that tensor cores want of it. A word of 16 bytes has its pieces of adjacent columns, two of FP8 or four of
// int4, and eight words follow one another, of four lanes and both rows. Of a piece of int4, codes 0, 2, 4 and 6 precede the others: a
// shift and a mask then give the two neighbours of a register.
//
// A panel is cut into parts, and each has its own scales after its codes, so that one copy brings both: by group, by row.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

struct CodePanel {
  static constexpr i32 kPartBytes = 16384;                 // a part has so many bytes of codes, at most
  static constexpr i32 kWordBytes = 16, kLineBytes = 128;  // a line: eight words, of four lanes and both rows
  static constexpr i32 kBlock = 128, kPiece = 8;           // columns
  static constexpr i32 kPieceCols = 32;                    // columns of which each lane has a piece

  i32 cols, bits;
  i32 group;  // columns that share a scale; 0: all

  // Groups hold whole pieces of all lanes, and parts hold whole groups.
  static constexpr bool takes(i32 columns) {
    return columns == 0 ||
           (columns >= kPieceCols && (columns & (columns - 1)) == 0 && columns <= kPartBytes / 2);
  }

  constexpr i32 pieces() const { return kWordBytes * 8 / (kPiece * bits); }  // a word has so many
  constexpr i32 part_cols() const { return kPartBytes * 8 / (2 * bits); }
  constexpr i32 parts() const { return (cols + part_cols() - 1) / part_cols(); }
  constexpr i32 cols_of(i32 part) const {
    const i32 left = cols - part * part_cols();
    return left < part_cols() ? left : part_cols();
  }
  constexpr i32 blocks_of(i32 part) const { return (cols_of(part) + kBlock - 1) / kBlock; }
  constexpr i32 code_bytes(i32 part) const { return blocks_of(part) * kBlock * 2 * bits / 8; }
  // Groups of whole blocks: columns that fill the last one have scales too.
  constexpr i32 groups_of(i32 part) const {
    return group > 0 ? (blocks_of(part) * kBlock + group - 1) / group : 1;
  }
  // Where several parts follow one another, all begin at a line.
  constexpr i32 scale_bytes(i32 part) const {
    const i32 unit = parts() > 1 ? kLineBytes : kWordBytes;
    return (groups_of(part) * 2 * 4 + unit - 1) / unit * unit;
  }
  constexpr i32 part_bytes(i32 part) const { return code_bytes(part) + scale_bytes(part); }
  constexpr i64 bytes() const {
    const i32 last = parts() - 1;
    return i64(last) * part_bytes(0) + part_bytes(last);
  }

  // Offset of a code inside the panel, in codes. The codes of a piece lie together.
  constexpr i64 place(i32 r, i32 k) const {
    const i32 part = k / part_cols(), inside = k % part_cols(), span = kPieceCols * pieces();
    const i32 lane = k % kPieceCols / kPiece, piece = inside % span / kPieceCols, e = k % kPiece;
    const i32 code = bits == 4 ? e / 2 + e % 2 * 4 : e;
    const i32 word = inside / span * 8 + 2 * lane + r;
    return i64(part) * part_bytes(0) * 8 / bits + (word * pieces() + piece) * kPiece + code;
  }
  // Offset of its scale inside the panel, in bytes.
  constexpr i64 scale_place(i32 r, i32 k) const {
    const i32 part = k / part_cols(), at = group > 0 ? k % part_cols() / group : 0;
    return i64(part) * part_bytes(0) + code_bytes(part) + (at * 2 + r) * 4;
  }
};

}  // namespace heddle
