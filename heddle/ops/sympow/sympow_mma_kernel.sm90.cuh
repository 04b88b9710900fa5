// sympow_mma as a whole kernel on sm_90a. One thread brings rows of x and blocks of 64 rows of the state by bulk copies;
// groups of four warps make phi of 64 rows each in registers, as the left operands of wgmma: phi is not even on chip.
// A block of phi is x0[i] x1[j] of two tiles of 8 elements. A lane has the pairs x1[j], x1[j + 1] of its two rows, takes x0[i] from its
// quad by shuffles once for all blocks of tile s0, and multiplies two at a time. Blocks are used in the order (s0, s0), (s0, 0), ...,
// (s0, s0 - 1) of each s0: all but the first count sqrt 2. A cluster of CTAs shares the blocks of the state.
// For power 4 a block is a group of columns (sympow_columns.h): x2[i] x3[j] times a number of each row, the product of its leading
// elements and the weight. Before each block a lane multiplies its pairs of x3 by it.
#pragma once

#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/pairs.cuh"
#include "heddle/kit/arch/wgmma.cuh"
#include "heddle/kit/arch/wgmma_products.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/move/store_pair.cuh"
#include "heddle/kit/move/store_tile.cuh"
#include "heddle/kit/move/tile_mma.cuh"
#include "heddle/ops/sympow/sympow_mma.h"
#include "heddle/ops/sympow/sympow_parts_kernel.sm90.cuh"

namespace heddle::device::sympow_mma {

using namespace sympow_parts;

struct KernelConfig {
  static constexpr i32 kPower = 2;
  static constexpr i32 kTiles = 8;     // tiles of 8 elements in a row of x
  static constexpr i32 kColumns = 64;  // columns of the state; a multiple of 8
  static constexpr i32 kGroups = 4;    // groups of four warps, 64 rows each
  static constexpr i32 kCluster = 2;   // CTAs that share the state
  static constexpr i32 kStages = 8;    // stages in flight
  static constexpr i32 kPer = 1;       // blocks of a stage: 1, or 2 where there is an even number
  static constexpr i32 kTurns =
      1;  // 1: a quarter of the next block is made between two products; 0: after all of them
};

template <class Config>
struct Kernel;
template <class Config>
using FrameOf = Frame<Kernel<Config>, Config, SympowMma, Config::kPer, false, 0>;

template <class Config>
struct Kernel : FrameOf<Config> {
  using Base = FrameOf<Config>;
  using Base::kType, Base::kTerms, Base::kColumns, Base::kPower, Base::kBlocks, Base::kCluster, Base::kPer,
      Base::kBox, Base::kBlock;
  using typename Base::Place, typename Base::Ring, typename Base::RowRing;
  static constexpr DType kOut = Base::kTypes.y.dtype;
  static constexpr tile::OperandTile kRowsOfState = Base::kStateTile.turned();
  static_assert(kPer == 1 || kBlocks % 2 == 0);

  // The registers in which a thread makes phi. `one`: x0[i] of both rows, twice. Two blocks: one is multiplied while the next is made.
  struct Factors : Base::RowPairs {
    u32 one[8][2], two[2];

    // one = the elements of tile s.
    void take(i32 s) {
#pragma unroll
      for (i32 row = 0; row < 2; ++row) {
        const u32 own = this->pair(row, s);
#pragma unroll
        for (i32 c = 0; c < 4; ++c) {
          const u32 got = __shfl_sync(~0u, own, (lane() & ~3u) + c);
          one[2 * c][row] = __byte_perm(got, got, 0x1010),
                  one[2 * c + 1][row] = __byte_perm(got, got, 0x3232);
        }
      }
    }
    // Makes 16 columns of the block.
    void make(u32 (&to)[4], i32 c) const {
#pragma unroll
      for (i32 i = 0; i < 4; ++i) to[i] = arch::multiply_pairs<kType>(one[2 * c + i / 2][i % 2], two[i % 2]);
    }
  };
  struct SquareMaker : Factors {
    using Factors::one, Factors::two, Factors::pair;
    i32 s0 = 0, q = 0;  // the block that is made next

    void begin() {
      if (q == 0) {
        this->take(s0);
      } else if (q == 1) {
#pragma unroll
        for (i32 i = 0; i < 16; ++i)
          one[i / 2][i % 2] = arch::multiply_pairs<kType>(one[i / 2][i % 2], arch::kRootsOfTwo<kType>);
      }
      const i32 s1 = q == 0 ? s0 : q - 1;
      two[0] = pair(0, s1), two[1] = pair(1, s1);
      if (q == s0)
        ++s0, q = 0;
      else
        ++q;
    }
  };
  struct FourthMaker : Factors {
    using Factors::two, Factors::pair, Factors::element;
    i32 block = 0;              // that is made next
    i32 first = 0, second = 0;  // the tiles of its leading elements
    u32 last[2] = {};           // pairs of its last tile
    float weight = 1;

    void begin() {
      const i32 inside = block % 64;
      if (inside == 0) {
        const SympowGroup group = sympow_group(4, block);
        first = group.first / 8, second = group.second / 8, weight = __fsqrt_rn(float(group.orders));
        this->take(group.slow / 8);
        last[0] = pair(0, group.fast / 8), last[1] = pair(1, group.fast / 8);
      }
#pragma unroll
      for (i32 row = 0; row < 2; ++row) {
        const float by = weight * element(row, first, inside / 8) * element(row, second, inside % 8);
        two[row] = arch::multiply_pairs<kType>(last[row], pack_pair<kType>(by, by));
      }
      ++block;
    }
  };
  static auto maker_of(arch::OnChip mine, u32 swizzle) {
    if constexpr (kPower == 4)
      return FourthMaker{{{mine, swizzle}}};
    else
      return SquareMaker{{{mine, swizzle}}};
  }

  static void multiply(const RowRing& rows, const Ring& ring, arch::OnChip, const SympowMma& a, u32 rank) {
    const u32 group = threadIdx.x / 128 - 1, member = threadIdx.x % 128, row = member / 32 * 16 + lane() / 4;
    typename RowRing::Place x;
    typename Ring::Place place;
    const auto release = [&] {  // the stage before `place`
      const typename Ring::Place done{(place.slot == 0 ? u32(Config::kStages) : place.slot) - 1, 0};
      release_stage<kCluster>(ring, done, member);
    };
    const EveryTile<kCluster> mine;
    const i32 all = Place::tiles(a);
#pragma unroll 1
    for (i32 t = mine.first; t < all; t += mine.stride) {
      rows.wait(x);
      auto maker = maker_of(rows.slot(x) + ((group * 64 + row) * 128 + lane() % 4 * 4), row % 8);
      float sums[kColumns / 2];
      u32 left[2][4][4];
      // Multiplies block `number` in `now` while the next one is made in `next`, a quarter between two products.
      const auto add_block = [&](i32 in_stage, u32(&now)[4][4], u32(&next)[4][4], bool add) {
        if (in_stage == 0) ring.wait(place);
#pragma unroll
        for (i32 c = 0; c < 4; ++c) arch::keep(now[c]);
        arch::keep(sums);
        arch::begin_products();
        const u64 b = arch::descriptor<kRowsOfState>(ring.slot(place) + in_stage * kBlock);
#pragma unroll
        for (i32 c = 0; c < 4; ++c) {
          arch::multiply<kTerms, kRowsOfState.major>(sums, now[c], step_of<kRowsOfState>(b, c), add || c > 0);
          if (Config::kTurns != 0 || c == 3) arch::commit_products();
          if (c == (Config::kTurns != 0 ? 0 : 3)) {
            maker.begin();
            arch::wait_products<1>();
            if (in_stage == 0 && add) release();
#pragma unroll
            for (i32 i = 0; i < 4; ++i) arch::keep(next[i]);
          }
          if (Config::kTurns != 0) maker.make(next[c], c);
        }
        if (Config::kTurns == 0) {
#pragma unroll
          for (i32 c = 0; c < 4; ++c) maker.make(next[c], c);
        }
        if (in_stage == kPer - 1) place.next();
      };
      maker.begin();
#pragma unroll
      for (i32 c = 0; c < 4; ++c) maker.make(left[0][c], c);
#pragma unroll 1
      for (i32 block = 0; block + 1 < kBlocks; block += 2) {
        add_block(0, left[0], left[1], block > 0);
        add_block(kPer == 2 ? 1 : 0, left[1], left[0], true);
      }
      if constexpr (kBlocks % 2 != 0) add_block(0, left[0], left[1], kBlocks > 1);
      if (member == 0) rows.release(x);
      x.next();
      arch::wait_products<0>();
      release();
      arch::keep(sums);
      store(sums, a, Place(a, t, rank), i32(group * 64 + row));
    }
  }
  static void store(const float (&sums)[kColumns / 2], const SympowMma& a, const Place& at, i32 row) {
#pragma unroll
    for (i32 half = 0; half < 2; ++half) {
      const i32 t = at.begin + row + half * 8;
      if (t >= at.end) continue;
      u8* const to =
          a.y.data + (at.b * a.y.stride[0] + t * a.y.stride[1] + at.h * a.y.stride[2]) * size_of(kOut);
#pragma unroll
      for (i32 j = 0; j < kColumns / 8; ++j)
        put_pair<kOut>(to, 4 * j + i32(lane() % 4), sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1]);
    }
  }
};

}  // namespace heddle::device::sympow_mma
