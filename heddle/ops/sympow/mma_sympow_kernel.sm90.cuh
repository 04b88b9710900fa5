// mma_sympow as a whole kernel on sm_90a: phi' is the left operand of wgmma, made in registers. A lane's pairs run over
// time: the loads of matrices turn x, so that a pair of x1[j] is the lane's own, and that of x0[i] comes from another lane of the warp.
// Shared-memory bandwidth is the limit. Each group of four warps therefore computes a unit of blocks of phi, two tiles s0 by kFast
// tiles s1, and loads and shuffles every tile once per unit. The square root of 2 multiplies FP32 sums. CTAs of a cluster have different units of one
// chunk, and share x and v. For power 4 a unit has the last two of a block's four tiles, times one element of each of the first two: a
// lane multiplies its pairs of x1 by these. Chunks are multiples of 64 positions, or one alone: a bulk copy reads zeros beyond the last position.
#pragma once

#include "heddle/kit/arch/bulk.cuh"
#include "heddle/kit/arch/cluster.cuh"
#include "heddle/kit/arch/matrices.cuh"
#include "heddle/kit/arch/mma.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/pairs.cuh"
#include "heddle/kit/arch/wgmma.cuh"
#include "heddle/kit/arch/wgmma_products.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/move/chip.cuh"
#include "heddle/kit/move/next_tile.cuh"
#include "heddle/kit/move/roles.cuh"
#include "heddle/kit/move/slot_ring.cuh"
#include "heddle/kit/move/store_pair.cuh"
#include "heddle/kit/move/tile_mma.cuh"
#include "heddle/ops/sympow/mma_sympow.h"
#include "heddle/ops/sympow/sympow_parts_kernel.sm90.cuh"

namespace heddle::device::mma_sympow {

using namespace sympow_parts;

struct KernelConfig {
  static constexpr i32 kPower = 2;
  static constexpr i32 kTiles = 8;     // tiles of 8 elements in a row of x
  static constexpr i32 kColumns = 64;  // columns of v; a multiple of 8
  static constexpr i32 kFast = 2;      // tiles s1 of a unit: 2, or 1 for wide v
  static constexpr i32 kCluster = 2;   // CTAs that share x and v
  static constexpr i32 kStages = 8;    // stages of 64 positions in flight
};

template <class Config>
struct Kernel {
  static constexpr MmaSympow kTypes = Config::types();
  static constexpr DType kType = kTypes.x.dtype, kOut = kTypes.s.dtype;
  static constexpr arch::Terms kTerms = kType == DType::kBf16 ? arch::Terms::kBf16 : arch::Terms::kF16;
  static constexpr i32 kTiles = Config::kTiles, kColumns = Config::kColumns, kFast = Config::kFast;
  static constexpr i32 kCluster = Config::kCluster, kGroups = 2, kPower = Config::kPower;
  static constexpr i32 kBlocks = i32(sympow_width(kPower, 8 * kTiles) / kSympowGroup);
  static constexpr i32 kOwn = 2 * kFast;  // blocks of a unit
  // Units of two tiles below `tiles`, and of all of phi.
  static constexpr i32 units_below(i32 tiles) {
    const i32 pairs = (tiles + 1) / 2;
    return kFast == 2 ? pairs * (pairs + 1) / 2 : pairs * (pairs + 1);
  }
  static constexpr i32 all_units() {
    if (kPower == 2) return units_below(kTiles);
    i32 units = 0;
    for (i32 s = 0; s < kTiles; ++s) units += (kTiles - s) * 64 * units_below(s + 1);
    return units;
  }
  static constexpr i32 kUnits = all_units();
  static constexpr i32 kParts = (kUnits + kGroups * kCluster - 1) / (kGroups * kCluster);
  static constexpr i32 kWide = (kColumns + 63) / 64, kWideRows = (kTiles + 7) / 8;  // boxes of v, of x
  static constexpr u32 kBox = 64 * 128;
  static constexpr tile::OperandTile kRowsOfV = tile::OperandTile{64, 64 * kWide, 2}.turned();
  using Ring = SlotRing<Config::kStages, (kWideRows + kWide) * kBox>;
  static constexpr tile::Budget kBudget = sympow_budget({kGroups, 0, 0, kWideRows + kWide}, Config::kStages);
  static constexpr u32 kThreads = kBudget.threads();

  struct Place {
    i32 b, h, chunk, begin, steps, part;

    Place(const MmaSympow& a, i32 item) {
      const ChunkTiles chunks = a.tiles();
      const i32 head = item / (kParts * chunks.chunks()), in = item % (kParts * chunks.chunks());
      b = head / a.x.size[2], h = head % a.x.size[2], chunk = in / kParts, part = in % kParts;
      begin = chunks.chunk_begin(chunk);
      steps = (chunks.chunk_end(chunk) - begin + 63) / 64;
    }
  };
  // The last two tiles of a unit's blocks: s0, s0 + 1 and s1, s1 + 1. Power 4: the tiles before them, and one element of each.
  struct Unit {
    i32 s0 = 0, s1, first = 0, second = kTiles - 1, inside = 0;

    explicit Unit(i32 number) {
      if constexpr (kPower == 4) {
        second = 0;
        for (i32 count = 64 * units_below(1); number >= count; count = 64 * units_below(second + 1)) {
          number -= count;
          if (second++ == first) ++first, second = 0;
        }
        inside = number / units_below(second + 1), number %= units_below(second + 1);
      }
      s1 = number;
      for (i32 more = kFast == 2 ? 1 : 2; s1 >= more; more += kFast == 2 ? 1 : 2) s1 -= more, s0 += 2;
      s1 *= kFast;
    }
    bool has(i32 a0, i32 a1) const { return a0 <= second && a1 <= a0; }
    i32 block(i32 a0, i32 a1) const {
      const i32 number = a0 * (a0 + 1) / 2 + a1;
      if (kPower == 2) return number;
      return i32(sympow_sequences(first, 4) + sympow_sequences(second, 3) + number) * 64 + inside;
    }
    float weight(i32 a0, i32 a1) const {
      if (kPower == 2) return a0 == a1 ? 1.0f : 1.41421356f;
      return __fsqrt_rn(float(sympow_orders(first, second, a0, a1)));
    }
  };
  static i32 items(const MmaSympow& a) { return a.x.size[0] * a.x.size[2] * a.tiles().chunks() * kParts; }

  static void run(const MmaSympow& a, const TensorMap* maps, u8*) {
    const Ring ring{chip() + kBudget.offset("ring"), chip() + kBudget.offset("of ring")};
    run_roles<Kernel, kCluster>([&] { ring.init(kGroups * kCluster); },
                                [&](u32 rank) { produce(ring, a, maps, rank); },
                                [&](u32 rank) { multiply(ring, a, rank); });
  }

  // Each CTA of a cluster brings its positions to all.
  static void produce(const Ring& ring, const MmaSympow& a, const TensorMap* maps, u32 rank) {
    constexpr i32 kMine = 64 / kCluster;
    constexpr u16 kAll = (1 << kCluster) - 1;
    typename Ring::Place place;
    const EveryTile<kCluster> mine;
    const i32 all = items(a);
#pragma unroll 1
    for (i32 item = mine.first; item < all; item += mine.stride) {
      const Place at(a, item);
#pragma unroll 1
      for (i32 step = 0; step < at.steps; ++step, place.next()) {
        ring.begin(place);
        const i32 t = at.begin + step * 64 + i32(rank) * kMine;
#pragma unroll
        for (i32 box = 0; box < kWideRows + kWide; ++box) {
          const arch::OnChip to = ring.slot(place) + (box * kBox + rank * kMine * 128);
          const bool of_x = box < kWideRows;
          const arch::Corner4 from{(of_x ? box : box - kWideRows) * 64, at.h, t, at.b};
          if constexpr (kCluster > 1)
            arch::load_box_to(kAll, to, maps + !of_x, ring.full(place), from);
          else
            arch::load_box(to, maps + !of_x, ring.full(place), from);
        }
      }
    }
  }

  static void multiply(const Ring& ring, const MmaSympow& a, u32 rank) {
    const u32 group = threadIdx.x / 128 - 1, member = threadIdx.x % 128, warp = member / 32;
    const u32 from0 = warp * 8 + lane() % 4, from1 = from0 + 4;
    typename Ring::Place place, made, done;  // for products; for left operands; for what is given back
    const auto release = [&] {
      release_stage<kCluster>(ring, done, member);
      done.next();
    };
    const EveryTile<kCluster> mine;
    const i32 all = items(a);
#pragma unroll 1
    for (i32 item = mine.first; item < all; item += mine.stride) {
      const Place at(a, item);
      const i32 number = (at.part * kCluster + i32(rank)) * kGroups + i32(group), steps = 4 * at.steps;
      const Unit unit(min(number, kUnits - 1));  // beyond the last one: made and not stored
      const u32 slow = u32(unit.s0) + lane() / 16, fast = u32(unit.s1) + (kFast == 2 ? lane() / 16 : 0);
      float sums[kOwn][kColumns / 2];
      u32 left[2][kOwn][4];
      const auto make = [&](u32(&to)[kOwn][4], i32 step) {
        if (step % 4 == 0) ring.wait(made);
        const u32 t = u32(step % 4) * 16 + lane() % 16;
        const arch::OnChip row = ring.slot(made) + t * 128;
        const auto load = [&](u32(&got)[4], u32 tile) {
          const u32 wide = kWideRows > 1 ? tile / 8 * kBox : 0;
          arch::load_transposed(got, row + (wide + (((kWideRows > 1 ? tile % 8 : tile) ^ t % 8) * 16)));
        };
        u32 x0[4], x1[4];  // one tile: 8 positions, and the next 8; then the other tile
        load(x0, slow), load(x1, fast);
        if constexpr (kPower == 4) {
          u32 leading[4];  // the tiles of both leading elements
          load(leading, u32(lane() / 16 == 0 ? unit.first : unit.second));
#pragma unroll
          for (i32 half = 0; half < 2; ++half) {
            const u32 by = arch::multiply_pairs<kType>(
                __shfl_sync(~0u, leading[half], u32(unit.inside) / 8 * 4 + lane() % 4),
                __shfl_sync(~0u, leading[2 + half], u32(unit.inside) % 8 * 4 + lane() % 4));
#pragma unroll
            for (i32 j = 0; j < kFast; ++j)
              x1[2 * j + half] = arch::multiply_pairs<kType>(x1[2 * j + half], by);
          }
        }
#pragma unroll
        for (i32 i = 0; i < 4; ++i) {
          const u32 one = __shfl_sync(~0u, x0[i], from0), two = __shfl_sync(~0u, x0[i], from1);
#pragma unroll
          for (i32 j = 0; j < kFast; ++j) {
            u32(&block)[4] = to[i / 2 * kFast + j];
            block[i % 2 * 2] = arch::multiply_pairs<kType>(one, x1[2 * j + i % 2]);
            block[i % 2 * 2 + 1] = arch::multiply_pairs<kType>(two, x1[2 * j + i % 2]);
          }
        }
        if (step % 4 == 3) made.next();
      };
      const auto multiply_step = [&](u32(&now)[kOwn][4], i32 step) {
#pragma unroll
        for (i32 n = 0; n < kOwn; ++n) arch::keep(now[n]), arch::keep(sums[n]);
        arch::begin_products();
        const u64 v =
            step_of<kRowsOfV>(arch::descriptor<kRowsOfV>(ring.slot(place) + kWideRows * kBox), step % 4);
#pragma unroll
        for (i32 n = 0; n < kOwn; ++n) arch::multiply<kTerms, kRowsOfV.major>(sums[n], now[n], v, step > 0);
        arch::commit_products();
        if (step % 4 == 3) place.next();
        arch::wait_products<1>();
        if (step % 4 == 0 && step > 0) release();
      };
      make(left[0], 0);
#pragma unroll 1
      for (i32 step = 0; step < steps; step += 4) {
#pragma unroll
        for (i32 i = 0; i < 4; ++i) {
          multiply_step(left[i % 2], step + i);
          if (step + i + 1 < steps) make(left[(i + 1) % 2], step + i + 1);
        }
      }
      arch::wait_products<0>();
      release();
#pragma unroll
      for (i32 n = 0; n < kOwn; ++n) {
        arch::keep(sums[n]);
        const i32 a0 = unit.s0 + n / kFast, a1 = unit.s1 + n % kFast;
        if (number < kUnits && unit.has(a0, a1))
          store(sums[n], unit.weight(a0, a1), a, at,
                (at.chunk * kBlocks + unit.block(a0, a1)) * 64 + i32(warp * 16 + lane() / 4));
      }
    }
  }
  static void store(const float (&sums)[kColumns / 2], float scale, const MmaSympow& a, const Place& at,
                    i32 row) {
#pragma unroll
    for (i32 half = 0; half < 2; ++half) {
      u8* const to =
          a.s.data +
          (at.b * a.s.stride[0] + at.h * a.s.stride[1] + (row + half * 8) * a.s.stride[2]) * size_of(kOut);
#pragma unroll
      for (i32 j = 0; j < kColumns / 8; ++j)
        put_pair<kOut>(to, 4 * j + i32(lane() % 4), sums[4 * j + 2 * half] * scale,
                       sums[4 * j + 2 * half + 1] * scale);
    }
  }
};

}  // namespace heddle::device::mma_sympow
