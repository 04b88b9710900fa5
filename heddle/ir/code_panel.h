// The panel of two rows of codes that a GPU's ring streams, with its scales. Its order is that of the threads that read it
// (backend/cuda/device/matvec_codes.cuh), so that each sum has the order of the sum over bf16. Host and device include it: no
// standard headers.
//
// A block is 32 columns, and warps take blocks in turn. A word of 16 bytes has a lane's pieces, of eight codes of one row, from
// adjacent turns of its warp: two blocks of FP8, four of int4. A span is the words of both rows that all warps read at once. After
// the last whole span come the pieces of the blocks that are left, block by block. Of a piece of int4, codes 0, 2, 4 and 6 precede
// the others: a shift and a mask then give the two neighbours of a register.
//
// A panel is cut into parts, and each has its own scales after its codes, so that one copy brings both. The scales that a lane
// uses in adjacent turns are adjacent: by place of the group in 256 columns, by row, by turn.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

struct CodePanel {
  static constexpr i32 kWordBytes = 16, kPartBytes = 16384;  // a part has so many bytes of codes, at most
  static constexpr i32 kBlock = 32, kPiece = 8,
                       kTurn = 256;        // columns: of a block, a piece, all warps' blocks
  static constexpr i32 kScalesAtOnce = 4;  // scales of adjacent turns that a lane loads

  i32 cols, bits;
  i32 group;  // columns that share a scale; 0: all

  // Groups are whole pieces, and divide what warps take in a turn, or hold some of it.
  static constexpr bool takes(i32 columns) {
    return columns == 0 || (columns >= kPiece && (columns & (columns - 1)) == 0 && columns <= kPartBytes / 2);
  }

  constexpr i32 pieces() const { return kWordBytes * 8 / (kPiece * bits); }  // a word has so many
  constexpr i32 span_cols() const { return kTurn * pieces(); }
  constexpr i32 part_cols() const { return kPartBytes * 8 / (2 * bits); }
  constexpr i32 parts() const { return (cols + part_cols() - 1) / part_cols(); }
  constexpr i32 cols_of(i32 part) const {
    const i32 left = cols - part * part_cols();
    return left < part_cols() ? left : part_cols();
  }
  constexpr i32 blocks_of(i32 part) const { return (cols_of(part) + kBlock - 1) / kBlock; }
  constexpr i32 code_bytes(i32 part) const { return blocks_of(part) * kBlock * 2 * bits / 8; }

  // Columns of a scale as it lies here: larger groups have it several times.
  constexpr i32 scale_cols() const { return group > kTurn ? kTurn : group; }
  constexpr i32 scales_per_turn() const { return group > 0 ? kTurn / scale_cols() : 1; }
  // Turns of which a row has scales, and bytes of all scales of a part.
  constexpr i32 scale_turns(i32 part) const {
    const i32 turns = group > 0 ? (cols_of(part) + kTurn - 1) / kTurn : 1;
    return (turns + kScalesAtOnce - 1) / kScalesAtOnce * kScalesAtOnce;
  }
  constexpr i32 scale_bytes(i32 part) const { return scales_per_turn() * 2 * scale_turns(part) * 4; }
  constexpr i32 part_bytes(i32 part) const { return code_bytes(part) + scale_bytes(part); }
  constexpr i64 bytes() const {
    const i32 last = parts() - 1;
    return i64(last) * part_bytes(0) + part_bytes(last);
  }

  // Offset of a code inside the panel, in codes. The codes of a piece lie together.
  constexpr i64 place(i32 r, i32 k) const {
    const i32 part = k / part_cols(), inside = k % part_cols(), e = k % kPiece;
    const i32 whole = cols_of(part) / span_cols() * span_cols();
    const i32 lane = 2 * (k % kBlock / kPiece) + r, code = bits == 4 ? e / 2 + e % 2 * 4 : e;
    i32 at;
    if (inside < whole) {
      const i32 span = inside / span_cols(), turn = inside % span_cols() / kTurn,
                warp = inside % kTurn / kBlock;
      at = 2 * span * span_cols() + ((warp * 8 + lane) * pieces() + turn) * kPiece;
    } else {
      at = 2 * whole + ((inside - whole) / kBlock * 8 + lane) * kPiece;
    }
    return i64(part) * part_bytes(0) * 8 / bits + at + code;
  }
  // Offset of its scale inside the panel, in bytes.
  constexpr i64 scale_place(i32 r, i32 k) const {
    const i32 part = k / part_cols(), inside = k % part_cols();
    const i32 place = group > 0 ? inside % kTurn / scale_cols() : 0, turn = group > 0 ? inside / kTurn : 0;
    return i64(part) * part_bytes(0) + code_bytes(part) + ((place * 2 + r) * scale_turns(part) + turn) * 4;
  }
};

}  // namespace heddle
