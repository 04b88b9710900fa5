// Panels of codes times one to eight rows of x, on tensor cores. ir/code_panel.h has the order of codes and scales. Codes are numbers of
// f16, and x is two of them (kScaledHalves); the sum over a group is multiplied by its scale, in f32.
//
// Sixteen rows of the weight, of eight panels, are the left matrix of mma.m16n8k16, a *tile*. Columns of the right one are the high
// and the low half of one row of x, or two to eight rows of either half. With one row and at most four panels, rows r and r + 8 of the
// left matrix are the same row of the weight, and adjacent pieces of it, whose x has columns of its own.
//
// Warps take blocks of 128 columns in turn, and their sums meet in shared memory. The order of a sum depends only on K, on whether x
// has one row, and on the number of warps.
#pragma once

#include "heddle/backend/cuda/device/matvec_mma.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/value/expand.cuh"

namespace heddle::device {

// One part of the panels of a group, in codes.
struct CodedPart {
  i32 begin, blocks;  // its first block of K, and how many it has
  i32 scales;         // where they begin in a panel
  i32 group;          // columns that share one; 0: all

  CodedPart(const PanelWalk& walk, const Weight& w) {
    const CodePanel panel = w.code_panel();
    const i32 part = walk.part();
    begin = part * panel.part_cols() / CodePanel::kBlock, blocks = panel.blocks_of(part);
    scales = panel.code_bytes(part), group = panel.group;
  }
  // Columns after which sums are scaled, as far as blocks go.
  i32 scaled_cols() const { return group == 0 || group > CodePanel::kBlock ? CodePanel::kBlock : group; }
};

using TileSums = float[2][4];  // two sums for each element of a tile's product

// One row of x: the columns are its high and its low half. Even and odd pieces have sums of their own, whether kPaired or not.
template <bool kPaired>
class HalfColumns {
 public:
  static constexpr i32 kSums = kPaired ? 1 : 4;  // even and odd pieces, for rows r and r + 8 of a tile

  explicit HalfColumns(const Plane& x) {
    const i32 lane = i32(arch::thread() % 32);
    word_ = x.data + lane % 4 * 32 + lane / 4 % 2 * 16 + (kPaired ? lane / 8 % 2 * kPieceBytes : 0);
  }
  // Multiplies piece `piece` of a block of K: eight columns of two rows of the weight, as f16.
  void multiply(TileSums& sums, i32 block, i32 piece, const uint4& f, const uint4& s) const {
    const uint4 x = *reinterpret_cast<const uint4*>(word_ + (block * 4 + piece) * kPieceBytes);
    float(&to)[4] = sums[kPaired ? 0 : piece % 2];
    arch::multiply_add<false>(to, {f.x, s.x, f.y, s.y}, {x.x, x.y});
    arch::multiply_add<false>(to, {f.z, s.z, f.w, s.w}, {x.z, x.w});
  }
  static void add(float (&to)[kSums], const TileSums& sums, float first, float second) {
    if constexpr (kPaired) {
      const i32 own = i32(arch::thread() % 4) == 1 ? 2 : 0;
      to[0] = fma(sum(own == 2 ? sums[0][2] : sums[0][0], own == 2 ? sums[0][3] : sums[0][1]), first, to[0]);
    } else {
#pragma unroll
      for (i32 i = 0; i < 4; ++i)
        to[i] = fma(sum(sums[i % 2][i / 2 * 2], sums[i % 2][i / 2 * 2 + 1]), i < 2 ? first : second, to[i]);
    }
  }
  // Stores a tile's sums, whose first row is column `first` of a fragment. partial: as in GroupProduct.
  static void store(const float (&sums)[kSums], i32 first, i32 cols, float* partial) {
    const i32 lane = i32(arch::thread() % 32), warp = i32(arch::thread() / 32), at = first + lane / 4;
    if constexpr (kPaired) {
      const float both = sums[0] + __shfl_xor_sync(~0u, sums[0], 1);
      if (lane % 4 == 0 && at < cols) partial[at * kWarps + warp] = both * kHighUnit;
    } else {
      if (lane % 4 == 0 && at < cols) partial[at * kWarps + warp] = (sums[0] + sums[1]) * kHighUnit;
      if (lane % 4 == 0 && at + 8 < cols) partial[(at + 8) * kWarps + warp] = (sums[2] + sums[3]) * kHighUnit;
    }
  }

 private:
  static constexpr i32 kPieceBytes = CodePanel::kPieceCols * 4;

  static float sum(float high, float low) { return fma(low, kLowUnit / kHighUnit, high); }

  const u8* word_;  // the lane's, of the first block
};

// Two to eight rows of x: the columns are the high halves of rows, then the low ones.
class HalfRows {
 public:
  static constexpr i32 kSums = 4;

  explicit HalfRows(const Plane& x) : rows_(x.rows) {
    const i32 lane = i32(arch::thread() % 32);
    word_ = x.data + min(lane / 4, x.rows - 1) * x.stride + lane % 4 * 32;
  }
  void multiply(TileSums& sums, i32 block, i32 piece, const uint4& f, const uint4& s) const {
    const uint4* const x =
        reinterpret_cast<const uint4*>(word_ + (block * 4 + piece) * CodePanel::kPieceCols * 4);
#pragma unroll
    for (i32 half = 0; half < 2; ++half) {
      const uint4 b = x[half];
      arch::multiply_add<false>(sums[half], {f.x, s.x, f.y, s.y}, {b.x, b.y});
      arch::multiply_add<false>(sums[half], {f.z, s.z, f.w, s.w}, {b.z, b.w});
    }
  }
  static void add(float (&to)[kSums], const TileSums& sums, float first, float second) {
#pragma unroll
    for (i32 i = 0; i < 4; ++i)
      to[i] = fma(fma(sums[1][i], kLowUnit / kHighUnit, sums[0][i]), i < 2 ? first : second, to[i]);
  }
  void store(const float (&sums)[kSums], i32 first, i32 cols, float* partial) const {
    const i32 lane = i32(arch::thread() % 32), warp = i32(arch::thread() / 32), m = lane % 4 * 2;
#pragma unroll
    for (i32 i = 0; i < 4; ++i) {
      const i32 at = first + lane / 4 + 8 * (i / 2), row = m + i % 2;
      if (at < cols && row < rows_) partial[(row * cols + at) * kWarps + warp] = sums[i] * kHighUnit;
    }
  }

 private:
  const u8* word_;  // the lane's, of the first block
  i32 rows_;
};

// out[m, c] = sum_k x[m, k] w[c, k] for panels of codes from the ring, in whole items.
template <bool kOneRow, Code kCode>
class CodedProduct {
  static constexpr i32 kTilePanels = 8,
                       kWords = bits_of(kCode) / 4;  // words of a row that a lane has of a block
  static constexpr i32 kPieces = 4;                  // a block has them

 public:
  explicit CodedProduct(const Plane& x) : x_(x) {}

  // See GroupProduct::run.
  __forceinline__ void run(Drawn& drawn, const Weight& w, i32 from, i32 end, i32 cols, float* partial) const {
    PanelWalk& walk = drawn.walk;
#pragma unroll 1
    while (2 * walk.panel() < end) {
      const i32 live = walk.live(), first = 2 * walk.panel() - from;
      walk.wait();
      if constexpr (!kOneRow)
        live > kTilePanels ? multiply_parts<2, false, HalfRows>(walk, w, first, cols, partial)
                           : multiply_parts<1, false, HalfRows>(walk, w, first, cols, partial);
      else if (live > kTilePanels)
        multiply_parts<2, false, HalfColumns<false>>(walk, w, first, cols, partial);
      else if (live > kTilePanels / 2)
        multiply_parts<1, false, HalfColumns<false>>(walk, w, first, cols, partial);
      else
        multiply_parts<1, true, HalfColumns<true>>(walk, w, first, cols, partial);
    }
  }

 private:
  // All parts of a group.
  template <i32 kTiles, bool kPaired, class Columns>
  __forceinline__ void multiply_parts(PanelWalk& walk, const Weight& w, i32 first, i32 cols,
                                      float* partial) const {
    const Columns columns(x_);
    float sums[kTiles][Columns::kSums] = {};
    for (bool more = true; more;) {
      multiply_part<kTiles, kPaired>(columns, walk, CodedPart(walk, w), sums);
      more = !walk.next();
      if (more) walk.wait();
    }
#pragma unroll
    for (i32 t = 0; t < kTiles; ++t) columns.store(sums[t], first + 16 * t, cols, partial);
  }

  template <i32 kTiles, bool kPaired, class Columns>
  __forceinline__ void multiply_part(const Columns& columns, const PanelWalk& walk, const CodedPart& part,
                                     float (&sums)[kTiles][Columns::kSums]) const {
    constexpr i32 kRows = kPaired ? 1 : 2 * kTiles, kStep = kPaired ? 2 : 1;
    const i32 lane = i32(arch::thread() % 32), warp = i32(arch::thread() / 32) % kWarps;
    const u32 word = u32(lane % 4 * 2 + lane / 4 % 2) * CodePanel::kWordBytes;
    arch::OnChip panel[kRows];
#pragma unroll
    for (i32 i = 0; i < kRows; ++i) panel[i] = walk.place(lane / 8 + 4 * i);
    // The scale of the columns from `k` of the part on; of two pieces in turn, each lane has that of its own.
    const auto scale_of = [&](i32 i, i32 k) {
      if (kPaired && lane % 4 == 1) k += CodePanel::kPieceCols;
      const i32 at = part.group > 0 ? i32(u32(k) / u32(part.group)) : 0;
      return __uint_as_float(
          arch::load_shared(panel[min(i, kRows - 1)] + u32(part.scales + (at * 2 + lane / 4 % 2) * 4)));
    };
    const i32 scaled = part.scaled_cols();
    TileSums of[kTiles] = {};
    float scale[2 * kTiles] = {};
#pragma unroll 1
    for (i32 block = warp; block < part.blocks; block += kWarps) {
      uint4 words[kRows][kWords];
#pragma unroll
      for (i32 i = 0; i < kRows; ++i)
#pragma unroll
        for (i32 j = 0; j < kWords; ++j)
          words[i][j] = arch::load_word(panel[i] + (word + u32(block * kWords + j) * CodePanel::kLineBytes));
#pragma unroll
      for (i32 p = 0; p < kPieces; p += kStep) {
        const i32 k = block * CodePanel::kBlock + p * CodePanel::kPieceCols;
        if (part.group > 0 && p * CodePanel::kPieceCols % scaled == 0) {
#pragma unroll
          for (i32 i = 0; i < 2 * kTiles; ++i) scale[i] = scale_of(i, k);
        }
#pragma unroll
        for (i32 t = 0; t < kTiles; ++t) {
          const uint4 of_first = piece(words[kPaired ? 0 : 2 * t], p);
          const uint4 of_second = kPaired ? piece(words[0], p + 1) : piece(words[kPaired ? 0 : 2 * t + 1], p);
          columns.multiply(of[t], part.begin + block, p, of_first, of_second);
        }
        if (part.group > 0 && (p + kStep) * CodePanel::kPieceCols % scaled == 0) {
#pragma unroll
          for (i32 t = 0; t < kTiles; ++t) add(columns, sums[t], of[t], scale[2 * t], scale[2 * t + 1]);
        }
      }
    }
    if (part.group > 0) return;
#pragma unroll
    for (i32 t = 0; t < kTiles; ++t) add(columns, sums[t], of[t], scale_of(2 * t, 0), scale_of(2 * t + 1, 0));
  }

  template <class Columns>
  static __forceinline__ void add(const Columns& columns, float (&to)[Columns::kSums], TileSums& sums,
                                  float first, float second) {
    columns.add(to, sums, first, second);
#pragma unroll
    for (i32 i = 0; i < 8; ++i) sums[i / 4][i % 4] = 0;
  }
  // Piece p of a block, as f16.
  static __forceinline__ uint4 piece(const uint4 (&words)[kWords], i32 p) {
    constexpr i32 kPer = kPieces / kWords;  // pieces of a word
    const uint4& word = words[p / kPer];
    const u32 codes[4] = {word.x, word.y, word.z, word.w};
    if constexpr (kCode == Code::kI4)
      return numbers_of_i4(codes[p % kPer]);
    else
      return numbers_of_e4m3(codes[2 * (p % kPer)], codes[2 * (p % kPer) + 1]);
  }

  Plane x_;
};

}  // namespace heddle::device
