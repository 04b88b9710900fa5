// Panels of bf16 times one to eight rows of x, on tensor cores. Warps multiply a *group* of up to eight panels, which are sixteen
// rows of the weight, with columns of x. A *block* is 32 elements of K. A lane holds 16 bytes of a block for two rows of the weight.
//
// One row of x: a lane's 16 bytes of a row of the weight are used unchanged as the four registers of the left matrix of
// mma.m16n8k16. Row r + 8 of that matrix is then row r of the weight again, with the odd pairs of elements. So the even pairs and
// the odd pairs of a block of x are columns of their own. If x is not bf16, it is stored as two bf16, a high and a low half, whose
// sum keeps 16 bits (kSplit): four columns per block. The eight columns hold two blocks, and of each block's sums only its own
// columns count. If x is bf16 already, a block has two columns and four blocks share the eight. Two to eight rows of x are the
// eight columns themselves.
//
// Warps share K, and their partial sums meet in shared memory. The order of a sum depends only on K and the number of warps.
#pragma once

#include "heddle/backend/cuda/device/panel_walk.cuh"
#include "heddle/backend/cuda/device/team.cuh"
#include "heddle/backend/cuda/device/view.cuh"
#include "heddle/kit/arch/mma.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/thread.cuh"

namespace heddle::device {

constexpr i32 kBlockCols = 32;                   // elements of K that a warp multiplies at a time
constexpr i32 kBlockBytes = kBlockCols * 2 * 2;  // bytes of a block in a panel, and in a row of x in halves
constexpr i32 kBlockStride = kWarps * kBlockBytes;  // warps take blocks in turn
// More than four blocks would spill in kernels that do not know their sizes, and with several rows of x.
constexpr i32 kBlocksAtOnce = kKnown && !kFewRows ? 8 : 4;
constexpr i32 kRoundBytes = kBlocksAtOnce * kBlockStride;  // what all warps multiply of a panel at a time

// A lane's words of a round, for rows r and r + 8 of a group.
struct GroupWords {
  uint4 first[kBlocksAtOnce], second[kBlocksAtOnce];
};
using GroupSums = float[4][4];
inline void clear_sums(GroupSums& sums) {
#pragma unroll
  for (i32 i = 0; i < 4; ++i)
#pragma unroll
    for (i32 j = 0; j < 4; ++j) sums[i][j] = 0;
}

// A lane's part of every group, computed once: which of the first four panels it reads, and where its first word lies there.
struct GroupLane {
  i32 lane = i32(arch::thread() % 32), warp = i32(arch::thread() / 32) % kWarps;
  i32 panel = lane / 8;
  u32 word = u32(warp * kBlockBytes + (lane % 4 * 2 + lane / 4 % 2) * kStreamWord);
  i32 last = lane % 4 * 2 * kStreamWord;  // bytes of a block before its words
};

// One row of x in halves. Eight elements are four pairs; the even pairs come first.
class SplitColumns {
 public:
  static constexpr bool kHasSecond = true;  // rows r + 8 of a group

  explicit SplitColumns(const Plane& x) : last_((x.cols - 1) / kBlockCols) {
    const i32 lane = i32(arch::thread() % 32), column = lane / 4 % 4;
    word_ = x.data + lane % 4 * 32 + column % 2 * 16 + column / 2 * 8;
    second_block_ = lane / 16 * kWarps;
  }
  // Multiplies blocks from `block` on, kWarps apart, as far as the panel, or the part of one, has `bytes`. The first begins at byte
  // `at`. kWhole: all of them are there.
  template <bool kWhole, bool kSecond>
  void multiply(const GroupWords& words, i32 block, i32 at, i32 bytes, GroupSums& sums) const {
#pragma unroll
    for (i32 b = 0; b < kBlocksAtOnce; ++b) {
      if (!kWhole && at + b * kBlockStride >= bytes) continue;
      i32 mine = block + b / 2 * 2 * kWarps + second_block_;
      if (!kWhole && (last_ + 1) % (kBlocksAtOnce * kWarps) != 0) mine = min(mine, last_);
      const uint2 x = *reinterpret_cast<const uint2*>(word_ + mine * kBlockBytes);
      const uint4 &f = words.first[b], &s = words.second[b];
      arch::multiply_add<true>(sums[b % 2], {f.x, f.y, f.z, f.w}, {x.x, x.y});
      if (kSecond) arch::multiply_add<true>(sums[2 + b % 2], {s.x, s.y, s.z, s.w}, {x.x, x.y});
    }
  }
  // Sums of a group whose first row is column `first` of a fragment. partial: as in GroupProduct.
  static void store(const GroupSums& sums, const GroupLane& lane, i32 first, i32 cols, float* partial) {
    const i32 own = lane.lane % 4;  // which columns of x: block own / 2, even or odd pairs
    float half[2] = {};             // sums of rows r and r + 8
#pragma unroll
    for (i32 i = 0; i < 4; ++i)
#pragma unroll
      for (i32 h = 0; h < 2; ++h) {
        const float* columns = &sums[2 * h + i / 2][i % 2 * 2];
        if (i == own) half[h] = columns[0] + columns[1];
      }
    // Two neighbouring lanes take one row each.
    const bool second = own % 2 != 0;
    float mine = (second ? half[1] : half[0]) + __shfl_xor_sync(~0u, second ? half[0] : half[1], 1);
    mine += __shfl_xor_sync(~0u, mine, 2);
    const i32 at = first + lane.lane / 4 + 8 * own;
    if (own < 2 && at < cols) partial[at * kWarps + lane.warp] = mine;
  }

 private:
  const u8* word_;    // the lane's, of the first block
  i32 last_;          // block of K
  i32 second_block_;  // distance from the first of two blocks to the one whose columns the lane has
};

// One row of x that is bf16 already. kShared blocks have columns of one right matrix, so that x is loaded once for all of them: 4 if
// no group has more than four panels, else 2.
template <i32 kShared>
class PlainColumns {
 public:
  static constexpr bool kHasSecond = kShared == 2;

  explicit PlainColumns(const Plane& x) : last_((x.cols - 1) / kBlockCols) {
    const i32 lane = i32(arch::thread() % 32), column = lane / 4;
    word_ = x.data + lane % 4 * 16;
    is_odd_ = column % 2 != 0;
    own_block_ = column / 2 % kShared * kWarps;
  }
  template <bool kWhole, bool kSecond>
  void multiply(const GroupWords& words, i32 block, i32 at, i32 bytes, GroupSums& sums) const {
#pragma unroll
    for (i32 b = 0; b < kBlocksAtOnce; ++b) {
      if (!kWhole && at + b * kBlockStride >= bytes) continue;
      i32 mine = block + b / kShared * kShared * kWarps + own_block_;
      if (!kWhole && (last_ + 1) % (kBlocksAtOnce * kWarps) != 0) mine = min(mine, last_);
      const uint4 x = *reinterpret_cast<const uint4*>(word_ + mine * (kBlockCols * 2));
      const u32 first = is_odd_ ? x.y : x.x, later = is_odd_ ? x.w : x.z;
      const uint4 &f = words.first[b], &s = words.second[b];
      arch::multiply_add<true>(sums[b % kShared], {f.x, f.y, f.z, f.w}, {first, later});
      if (kSecond) arch::multiply_add<true>(sums[2 + b % 2], {s.x, s.y, s.z, s.w}, {first, later});
    }
  }
  // Sums of a group whose first row is column `first` of a fragment. partial: as in GroupProduct.
  static void store(const GroupSums& sums, const GroupLane& lane, i32 first, i32 cols, float* partial) {
    const i32 own = lane.lane % 4;  // the lane's block; with two blocks, also whether its row is r or r + 8
    float half = 0;
#pragma unroll
    for (i32 i = 0; i < 4; ++i)
      if (i == own) half = sums[i][0] + sums[i][3];
#pragma unroll
    for (i32 step = 1; step < kShared; step *= 2) half += __shfl_xor_sync(~0u, half, step);
    const i32 at = first + lane.lane / 4 + own / kShared * 8;
    if (own % kShared == 0 && at < cols) partial[at * kWarps + lane.warp] = half;
  }

 private:
  const u8* word_;  // the lane's, of the first block
  i32 last_;        // block of K
  bool is_odd_;
  i32 own_block_;  // distance from the first of the blocks that share columns to the one of the lane's column
};

// Two to eight rows of bf16.
class RowColumns {
 public:
  static constexpr bool kHasSecond = true;

  explicit RowColumns(const Plane& x) : rows_(x.rows) {
    const i32 lane = i32(arch::thread() % 32), column = min(lane / 4, x.rows - 1);
    word_ = x.data + column * x.stride + lane % 4 * 16;
  }
  template <bool kWhole, bool kSecond>
  void multiply(const GroupWords& words, i32 block, i32 at, i32 bytes, GroupSums& sums) const {
#pragma unroll
    for (i32 b = 0; b < kBlocksAtOnce; ++b) {
      if (!kWhole && at + b * kBlockStride >= bytes) continue;
      const uint4 x = *reinterpret_cast<const uint4*>(word_ + (block + b * kWarps) * (kBlockCols * 2));
      const uint4 &f = words.first[b], &s = words.second[b];
      arch::multiply_add<true>(sums[b % 4], {f.x, s.x, f.y, s.y}, {x.x, x.y});
      arch::multiply_add<true>(sums[b % 4], {f.z, s.z, f.w, s.w}, {x.z, x.w});
    }
  }
  // Sums of a group whose first row is column `first` of a fragment. partial: as in GroupProduct.
  void store(const GroupSums& sums, const GroupLane& lane, i32 first, i32 cols, float* partial) const {
    const i32 m = lane.lane % 4 * 2;
#pragma unroll
    for (i32 i = 0; i < 4; ++i) {
      const i32 at = first + lane.lane / 4 + 8 * (i / 2), row = m + i % 2;
      const float sum = (sums[0][i] + sums[1][i]) + (sums[2][i] + sums[3][i]);
      if (at < cols && row < rows_) partial[(row * cols + at) * kWarps + lane.warp] = sum;
    }
  }

 private:
  const u8* word_;  // the lane's, of the first block
  i32 rows_;
};

// Where a lane's words of one part of a group lie.
struct GroupPlace {
  arch::OnChip first = {}, second = {};

  __forceinline__ void look(const PanelWalk& walk, const GroupLane& lane) {
    first = walk.place(lane.panel) + lane.word, second = walk.place(lane.panel + 4) + lane.word;
    arch::forget(first), arch::forget(second);  // compute them here, not where they are used
  }
};

// One part of a group: `bytes` of each panel, from block `begin` of K on. kWhole: they are rounds of all warps.
template <bool kWhole, bool kSecond, class Columns>
inline void multiply_part(const GroupPlace& place, const GroupLane& lane, const Columns& x, i32 begin,
                          i32 bytes, GroupSums& sums) {
#pragma unroll
  for (i32 from = 0; from < kPartBytes; from += kRoundBytes) {
    const i32 mine = from + lane.warp * kBlockBytes;  // the warp's first block
    if ((kWhole ? from : mine) >= bytes) break;
    GroupWords words = {};
#pragma unroll
    for (i32 b = 0; b < kBlocksAtOnce; ++b) {
      const i32 at = b * kBlockStride;
      if (!kWhole && mine + at >= bytes) continue;
      words.first[b] = arch::load_word(place.first + u32(from + at));
      if (kSecond) words.second[b] = arch::load_word(place.second + u32(from + at));
      if (!kWhole && bytes % kBlockBytes != 0 && mine + at + lane.last >= bytes)
        words.first[b] = words.second[b] = {};
    }
    x.template multiply<kWhole, kSecond>(words, begin + from / kBlockBytes + lane.warp, mine, bytes, sums);
  }
}

// A product's place in the ring, looked up before its operand is there.
struct Drawn {
  PanelWalk walk;
  GroupLane lane;
  GroupPlace place;

  __forceinline__ Drawn(const RingCursor& ring, const Weight& w, i32 columns) : walk(ring, w, columns) {
    place.look(walk, lane);
  }
};

// out[m, c] = sum_k x[m, k] w[c, k] for panels from the ring, in whole items.
template <class Columns>
class GroupProduct {
  static_assert(kPartBytes % kRoundBytes == 0 && sizeof(Columns) > 0,
                "parts are no whole rounds of so many warps");

 public:
  explicit GroupProduct(const Plane& x) : columns_(x) {}

  // Multiplies the panels up to column `end` of the walk. partial: [x.rows][cols][kWarps], from column `from` on.
  __forceinline__ void run(Drawn& drawn, const Weight&, i32 from, i32 end, i32 cols, float* partial) const {
    PanelWalk& walk = drawn.walk;
    const GroupLane& lane = drawn.lane;
    GroupSums sums = {};
    const bool whole = walk.is_multiple(kRoundBytes);
#pragma unroll 1
    while (2 * walk.panel() < end) {
      const i32 live = walk.live(), bytes = walk.bytes(), begin = walk.begin() / kBlockBytes;
      walk.wait();
      whole ? multiply<true>(drawn, live, begin, bytes, sums)
            : multiply<false>(drawn, live, begin, bytes, sums);
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
  __forceinline__ void multiply(const Drawn& drawn, i32 live, i32 begin, i32 bytes, GroupSums& sums) const {
    live > 4
        ? multiply_part<kWhole, Columns::kHasSecond>(drawn.place, drawn.lane, columns_, begin, bytes, sums)
        : multiply_part<kWhole, false>(drawn.place, drawn.lane, columns_, begin, bytes, sums);
  }
  Columns columns_;
};

}  // namespace heddle::device
