// Panels of codes times one to eight rows of x: a lane expands its pieces to bf16 in registers, and the products are those of panels of
// bf16 (matvec_mma.cuh), in the same order. ir/code_panel.h has the order of codes and scales. A value is code * scale in f32,
// rounded to bf16: exactly the value that an expansion in memory has.
#pragma once

#include "heddle/backend/cuda/device/expand.cuh"
#include "heddle/backend/cuda/device/matvec_mma.cuh"
#include "heddle/kit/arch/on_chip.cuh"

namespace heddle::device {

static_assert(CodePanel::kTurn == kWarps * kBlockCols || !kReadsCodes,
              "panels of codes are for so many warps");

// A lane's scales of a round, by block.
struct RoundScales {
  float of[kBlocksAtOnce];
};

// One part of the panels of a group, in codes. Its bytes, blocks and rounds are counted as those of the bf16 that they stand for.
template <Code kCode>
struct CodedPart {
  static constexpr i32 kBits = bits_of(kCode), kPieces = 16 / kBits;  // a word has so many
  static constexpr i32 kWords = kBlocksAtOnce / kPieces;              // a round has so many

  i32 begin, bytes;        // its first block of K; bytes of a panel as bf16
  i32 spans;               // whole ones
  i32 scales, next_place;  // where its scales begin in a panel; from those of one place in a turn to the next
  i32 scale_cols;          // 0: the row has one

  CodedPart(const PanelWalk& walk, const Weight& w) {
    const CodePanel panel = w.code_panel();
    const i32 part = walk.part();
    begin = part * panel.part_cols() / kBlockCols, bytes = panel.blocks_of(part) * kBlockBytes;
    spans = panel.cols_of(part) / panel.span_cols();
    scales = panel.code_bytes(part), next_place = panel.scale_turns(part) * i32(sizeof(float));
    scale_cols = panel.scale_cols();
  }
  static bool is_whole(const Weight& w) { return w.cols() % (kRoundBytes / kBlockBytes * kBlockCols) == 0; }

  template <bool kWhole, bool kSecond>
  __forceinline__ void load(GroupWords& words, const GroupPlace& place, const GroupLane& lane,
                            i32 from) const {
    uint4 first[kWords] = {}, second[kWords] = {};
#pragma unroll
    for (i32 i = 0; i < kWords; ++i) {
      first[i] = load_codes<kWhole>(place.first, lane, from, i);
      if (kSecond) second[i] = load_codes<kWhole>(place.second, lane, from, i);
    }
    RoundScales of_first, of_second;
    load_scales(of_first, place.first, lane, from);
    if (kSecond) load_scales(of_second, place.second, lane, from);
    if constexpr (kCode == Code::kI4) {
      u32 more = 0;  // bits that a bf16 has no place for
#pragma unroll
      for (i32 b = 0; b < kBlocksAtOnce; ++b) {
        more |= __float_as_uint(of_first.of[b]);
        if (kSecond) more |= __float_as_uint(of_second.of[b]);
      }
      if (!__all_sync(~0u, (more & 0xffffu) == 0))
        return expand<kSecond, false>(words, first, second, of_first, of_second);
    }
    expand<kSecond, true>(words, first, second, of_first, of_second);
  }

 private:
  static __forceinline__ arch::OnChip panel_of(arch::OnChip word, const GroupLane& lane) {
    return {word.at - lane.word};
  }
  // Word i of a round, whose pieces are those of adjacent turns.
  template <bool kWhole>
  __forceinline__ uint4 load_codes(arch::OnChip word, const GroupLane& lane, i32 from, i32 i) const {
    const i32 span = from / kBlockStride / kPieces + i;
    if (kWhole || span < spans) return arch::load_word(word + u32(span * kBlockStride));
    constexpr i32 kPieceWords = 4 / kPieces;
    u32 codes[4] = {};
#pragma unroll
    for (i32 p = 0; p < kPieces; ++p) {
      const i32 block = ((span - spans) * kPieces + p) * kWarps + lane.warp;
      if (spans * kPieces * kWarps + block >= bytes / kBlockBytes) continue;
      const i32 piece = block * 8 + i32(lane.word - u32(lane.warp * kBlockBytes)) / kStreamWord;
#pragma unroll
      for (i32 j = 0; j < kPieceWords; ++j)
        codes[p * kPieceWords + j] = arch::load_shared(
            panel_of(word, lane) + u32(spans * kBlockStride + (piece * kPieceWords + j) * 4));
    }
    return {codes[0], codes[1], codes[2], codes[3]};
  }

  __forceinline__ void load_scales(RoundScales& to, arch::OnChip word, const GroupLane& lane,
                                   i32 from) const {
    const i32 row = lane.lane / 4 % 2, turn = from / kBlockStride;
    if (scale_cols == 0) {
      const float all =
          __uint_as_float(arch::load_shared(panel_of(word, lane) + u32(scales + row * next_place)));
#pragma unroll
      for (i32 b = 0; b < kBlocksAtOnce; ++b) to.of[b] = all;
      return;
    }
    const i32 inside = lane.warp * kBlockCols + lane.lane % 4 * CodePanel::kPiece;  // columns of a turn
    const u32 at = u32(scales + (inside / scale_cols * 2 + row) * next_place + turn * i32(sizeof(float)));
#pragma unroll
    for (i32 b = 0; b < kBlocksAtOnce; b += 4) {
      uint4 four = {};
      if ((turn + b) * i32(sizeof(float)) < next_place)
        four = arch::load_word(panel_of(word, lane) + (at + u32(4 * b)));
      to.of[b] = __uint_as_float(four.x), to.of[b + 1] = __uint_as_float(four.y);
      to.of[b + 2] = __uint_as_float(four.z), to.of[b + 3] = __uint_as_float(four.w);
    }
  }

  template <bool kSecond, bool kNarrow>
  static __forceinline__ void expand(GroupWords& words, const uint4 (&first)[kWords],
                                     const uint4 (&second)[kWords], const RoundScales& of_first,
                                     const RoundScales& of_second) {
#pragma unroll
    for (i32 b = 0; b < kBlocksAtOnce; ++b) {
      words.first[b] = piece<kNarrow>(first[b / kPieces], b % kPieces, of_first.of[b]);
      if (kSecond) words.second[b] = piece<kNarrow>(second[b / kPieces], b % kPieces, of_second.of[b]);
    }
  }
  template <bool kNarrow>
  static __forceinline__ uint4 piece(const uint4& word, i32 p, float scale) {
    const u32 codes[4] = {word.x, word.y, word.z, word.w};
    if constexpr (kCode == Code::kI4)
      return expand_i4<kNarrow>(codes[p], scale);
    else
      return expand_e4m3(codes[2 * p], codes[2 * p + 1], scale);
  }
};

// out[m, c] = sum_k x[m, k] w[c, k] for panels of codes from the ring, in whole items.
template <class Columns, Code kCode>
class CodedProduct {
  using Part = CodedPart<kCode>;

 public:
  explicit CodedProduct(const Plane& x) : columns_(x) {}

  // See GroupProduct::run.
  __forceinline__ void run(Drawn& drawn, const Weight& w, i32 from, i32 end, i32 cols, float* partial) const {
    PanelWalk& walk = drawn.walk;
    const GroupLane& lane = drawn.lane;
    GroupSums sums = {};
    const bool whole = Part::is_whole(w);
#pragma unroll 1
    while (2 * walk.panel() < end) {
      const i32 live = walk.live();
      const Part part(walk, w);
      walk.wait();
      whole ? multiply<true>(drawn, live, part, sums) : multiply<false>(drawn, live, part, sums);
      const i32 first = 2 * walk.panel() - from;
      if (walk.next()) {
        columns_.store(sums, lane, first, cols, partial);
        clear_sums(sums);
      }
      if (walk.live() > 0) drawn.place.look(walk, lane);
    }
  }

 private:
  template <bool kWhole>
  __forceinline__ void multiply(const Drawn& drawn, i32 live, const Part& part, GroupSums& sums) const {
    live > 4 ? multiply_part<kWhole, Columns::kHasSecond>(drawn, part, sums)
             : multiply_part<kWhole, false>(drawn, part, sums);
  }
  // kWhole: all warps have all blocks of each round.
  template <bool kWhole, bool kSecond>
  __forceinline__ void multiply_part(const Drawn& drawn, const Part& part, GroupSums& sums) const {
    const GroupLane& lane = drawn.lane;
#pragma unroll 1
    for (i32 from = 0;; from += kRoundBytes) {
      const i32 mine = from + lane.warp * kBlockBytes;  // the warp's first block
      if ((kWhole ? from : mine) >= part.bytes) break;
      GroupWords words = {};
      part.template load<kWhole, kSecond>(words, drawn.place, lane, from);
      columns_.template multiply<kWhole, kSecond>(words, part.begin + from / kBlockBytes + lane.warp, mine,
                                                  part.bytes, sums);
    }
  }

  Columns columns_;
};
template <class Columns>
using Fp8Product = CodedProduct<Columns, Code::kF8E4M3>;
template <class Columns>
using Int4Product = CodedProduct<Columns, Code::kI4>;

}  // namespace heddle::device
