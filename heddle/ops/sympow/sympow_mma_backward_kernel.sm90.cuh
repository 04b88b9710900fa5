// sympow_mma_backward as a whole kernel on sm_90a. dy times a block of 64 rows of the state is the gradient of a block of
// phi, 64 columns x0[i] x1[j] of two tiles of x; it stays in registers, and its products with x0 and x1 are added to dx, tile by tile.
// The gradient of one block is folded while the next one is multiplied. A thread has two rows; of a tile it has elements j, j + 1 in
// `slots` on chip, and of tile s0 all elements, over its own columns, in registers. Blocks are used as sympow_mma uses them. For power 4 a block is a group of columns, which the two leading elements
// multiply: its products with x0 and x1, summed, are also the gradient of their product.
#pragma once

#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/pairs.cuh"
#include "heddle/kit/arch/wgmma.cuh"
#include "heddle/kit/arch/wgmma_products.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/move/store_pair.cuh"
#include "heddle/kit/move/store_tile.cuh"
#include "heddle/ops/sympow/sympow_mma_backward.h"
#include "heddle/ops/sympow/sympow_parts_kernel.sm90.cuh"

namespace heddle::device::sympow_mma_backward {

using namespace sympow_parts;

struct KernelConfig {
  static constexpr i32 kPower = 2;
  static constexpr i32 kTiles = 8;     // tiles of 8 elements in a row of x
  static constexpr i32 kColumns = 64;  // columns of the state; a multiple of 8
  static constexpr i32 kGroups = 2;    // groups of four warps, 64 rows each
  static constexpr i32 kCluster = 2;   // CTAs that share the state
  static constexpr i32 kStages = 6;    // stages in flight
};

template <class Config>
struct Kernel;
template <class Config>
using FrameOf = Frame<Kernel<Config>, Config, SympowMmaBackward,
                      sympow_width(Config::kPower, 8 * Config::kTiles) / kSympowGroup % 2 == 0 ? 2 : 1, true,
                      Config::kTiles * 128 * 16>;

// Maps: x, dy, the state.
template <class Config>
struct Kernel : FrameOf<Config> {
  using Base = FrameOf<Config>;
  using Base::kType, Base::kTerms, Base::kTiles, Base::kColumns, Base::kPower, Base::kBlocks, Base::kCluster,
      Base::kPer, Base::kWideRows, Base::kBox, Base::kBlock, Base::kRowBytes, Base::kRowTile,
      Base::kStateTile;
  using typename Base::Place, typename Base::Ring, typename Base::RowRing;
  static constexpr DType kOut = Base::kTypes.dx.dtype;
  static constexpr u32 kSlotBytes = kTiles * 128 * 16;

  // Adds gradients of blocks to dx, in the order of use.
  struct Factors : Base::RowPairs {
    arch::OnChip slots;  // the thread has 16 bytes a tile, elements j and j + 1 of both rows
    float x0[8][2], of_s0[8][2];

    void clear() const {
#pragma unroll
      for (i32 s = 0; s < kTiles; ++s) arch::store_floats(slots + s * 2048, {0, 0, 0, 0});
    }
    void begin_tile(i32 s0) {
#pragma unroll
      for (i32 row = 0; row < 2; ++row) {
        const u32 own = this->pair(row, s0);
#pragma unroll
        for (i32 c = 0; c < 4; ++c) {
          const float2 two = unpack_pair<kType>(__shfl_sync(~0u, own, (lane() & ~3u) + c));
          x0[2 * c][row] = two.x, x0[2 * c + 1][row] = two.y;
          of_s0[2 * c][row] = of_s0[2 * c + 1][row] = 0;
        }
      }
    }
    // Adds the sums of the quad for tile s0.
    void end_tile(i32 s0) const {
      float mine_of[2][2] = {};
#pragma unroll
      for (i32 i = 0; i < 8; ++i)
#pragma unroll
        for (i32 row = 0; row < 2; ++row) {
          float sum = of_s0[i][row];
          sum += __shfl_xor_sync(~0u, sum, 1);
          sum += __shfl_xor_sync(~0u, sum, 2);
          if (i32(lane() % 4) == i / 2) mine_of[row][i % 2] = sum;
        }
      add(s0, mine_of);
    }
    void add(i32 s, const float (&more)[2][2]) const { put(s, arch::load_floats(slots + s * 2048), more); }
    void put(i32 s, const float4& sum, const float (&more)[2][2]) const {
      arch::store_floats(slots + s * 2048,
                         {sum.x + more[0][0], sum.y + more[0][1], sum.z + more[1][0], sum.w + more[1][1]});
    }
  };
  // prepare() brings what fold() of the next block needs, while that block is multiplied.
  struct SquareFolder : Factors {
    using Factors::of_s0, Factors::pair, Factors::slots, Factors::x0;
    i32 s0 = 0, q = 0;  // the next block
    i32 s1 = 0;
    float weight = 1;
    float2 x1[2] = {};
    float4 sum = {};  // tile s1 of dx so far

    void prepare() {
      if (q == 0) this->begin_tile(s0);
      s1 = q == 0 ? s0 : q - 1;
      weight = q == 0 ? 1.0f : 1.41421356f;
#pragma unroll
      for (i32 row = 0; row < 2; ++row) x1[row] = unpack_pair<kType>(pair(row, s1));
      sum = arch::load_floats(slots + s1 * 2048);
    }
    void fold(const float (&d)[32]) {
      float of_s1[2][2] = {};
#pragma unroll
      for (i32 row = 0; row < 2; ++row) {
        const float first = x1[row].x * weight, second = x1[row].y * weight;
#pragma unroll
        for (i32 i = 0; i < 8; ++i) {
          const float one = d[4 * i + 2 * row], two = d[4 * i + 2 * row + 1];
          of_s0[i][row] = fma(one, first, fma(two, second, of_s0[i][row]));
          of_s1[row][0] += one * x0[i][row], of_s1[row][1] += two * x0[i][row];
        }
        of_s1[row][0] *= weight, of_s1[row][1] *= weight;
      }
      this->put(s1, sum, of_s1);
      if (q == s0) {
        this->end_tile(s0);
        ++s0, q = 0;
      } else {
        ++q;
      }
    }
  };
  struct FourthFolder : Factors {
    using Factors::of_s0, Factors::pair, Factors::x0, Factors::element;
    i32 block = 0;                                  // the next
    i32 first = 0, second = 0, slow = 0, fast = 0;  // its tiles; the first two have one element each
    float weight = 1, of_fast[2][2] = {}, of_first[2][2] = {}, of_second[2][2] = {};
    float2 x1s[2] = {};
    float ones[2] = {}, others[2] = {};  // the leading elements of both rows

    void prepare() {
      const i32 inside = block % 64;
      if (inside == 0) begin_set();
#pragma unroll
      for (i32 row = 0; row < 2; ++row) {
        x1s[row] = unpack_pair<kType>(pair(row, fast));
        ones[row] = element(row, first, inside / 8), others[row] = element(row, second, inside % 8);
      }
    }
    void fold(const float (&d)[32]) {
      const i32 inside = block % 64;
#pragma unroll
      for (i32 row = 0; row < 2; ++row) {
        const float2 x1 = x1s[row];
        const float one_of = ones[row], other = others[row], by = weight * one_of * other;
        float sums[2] = {};  // columns j and j + 1, each times x0
#pragma unroll
        for (i32 i = 0; i < 8; ++i) {
          const float one = d[4 * i + 2 * row], two = d[4 * i + 2 * row + 1];
          of_s0[i][row] = fma(by, fma(one, x1.x, two * x1.y), of_s0[i][row]);
          sums[0] += one * x0[i][row], sums[1] += two * x0[i][row];
        }
        of_fast[row][0] += by * sums[0], of_fast[row][1] += by * sums[1];
        float both =
            weight * (sums[0] * x1.x + sums[1] * x1.y);  // the gradient of the leading elements' product
        both += __shfl_xor_sync(~0u, both, 1);
        both += __shfl_xor_sync(~0u, both, 2);
        add_one(of_first[row], inside / 8, both * other);
        add_one(of_second[row], inside % 8, both * one_of);
      }
      if (inside == 63) end_set();
      ++block;
    }

   private:
    // Begins the 64 groups of one set of tiles.
    void begin_set() {
      const SympowGroup group = sympow_group(4, block);
      first = group.first / 8, second = group.second / 8, slow = group.slow / 8, fast = group.fast / 8;
      weight = __fsqrt_rn(float(group.orders));
      this->begin_tile(slow);
#pragma unroll
      for (i32 i = 0; i < 4; ++i)
        of_fast[i / 2][i % 2] = of_first[i / 2][i % 2] = of_second[i / 2][i % 2] = 0;
    }
    void end_set() const {
      this->end_tile(slow);
      this->add(fast, of_fast), this->add(first, of_first), this->add(second, of_second);
    }
    // The lane that has element i of a tile adds to it.
    static void add_one(float (&to)[2], i32 i, float more) {
      const bool has = i32(lane() % 4) == i / 2;
      to[0] += has && i % 2 == 0 ? more : 0.0f, to[1] += has && i % 2 != 0 ? more : 0.0f;
    }
  };
  static auto folder_of(arch::OnChip mine, arch::OnChip slots, u32 swizzle) {
    if constexpr (kPower == 4)
      return FourthFolder{{{mine, swizzle}, slots}};
    else
      return SquareFolder{{{mine, swizzle}, slots}};
  }

  static void multiply(const RowRing& rows, const Ring& ring, arch::OnChip slots, const SympowMmaBackward& a,
                       u32 rank) {
    const u32 group = threadIdx.x / 128 - 1, member = threadIdx.x % 128, row = member / 32 * 16 + lane() / 4;
    typename RowRing::Place x;
    typename Ring::Place place, done;
    const auto release = [&] {
      release_stage<kCluster>(ring, done, member);
      done.next();
    };
    const EveryTile<kCluster> mine;
    const i32 all = Place::tiles(a);
#pragma unroll 1
    for (i32 t = mine.first; t < all; t += mine.stride) {
      rows.wait(x);
      const arch::OnChip here = rows.slot(x) + group * 8192, dy = here + kWideRows * kRowBytes;
      auto folder =
          folder_of(here + (row * 128 + lane() % 4 * 4), slots + (group * kSlotBytes + member * 16), row % 8);
      folder.clear();
      float gradients[2][32];
      // Begins the product of a block, the `in_stage`-th of its stage.
      const auto begin = [&](i32 in_stage, float(&to)[32]) {
        if (in_stage == 0) ring.wait(place);
        arch::keep(to);
        arch::begin_products();
#pragma unroll
        for (i32 i = 0; i < (kColumns + 15) / 16; ++i) {
          const u64 left = arch::descriptor<kRowTile>(dy + tile::step_bytes(kRowTile, i));
          const u64 right = arch::descriptor<kStateTile>(
              ring.slot(place) + (in_stage * kBlock + tile::step_bytes(kStateTile, i)));
          arch::multiply<kTerms, kRowTile.major, kStateTile.major>(to, left, right, i > 0);
        }
        arch::commit_products();
        if (in_stage == kPer - 1) place.next();
      };
      const auto step = [&](i32 in_stage, bool is_last, float(&now)[32], float(&next)[32]) {
        if (!is_last) begin(kPer - 1 - in_stage, next);
        folder.prepare();
        if (is_last)
          arch::wait_products<0>();
        else
          arch::wait_products<1>();
        arch::keep(now);
        if (in_stage == kPer - 1) release();
        folder.fold(now);
      };
      begin(0, gradients[0]);
#pragma unroll 1
      for (i32 block = 0; block + 2 < kBlocks; block += 2) {
        step(0, false, gradients[0], gradients[1]);
        step(kPer - 1, false, gradients[1], gradients[0]);
      }
      if constexpr (kBlocks % 2 == 0) {
        step(0, false, gradients[0], gradients[1]);
        step(kPer - 1, true, gradients[1], gradients[0]);
      } else {
        step(0, true, gradients[0], gradients[1]);
      }
      if (member == 0) rows.release(x);
      x.next();
      store(folder, a, Place(a, t, rank), i32(group * 64 + row));
    }
  }
  static void store(const Factors& folder, const SympowMmaBackward& a, const Place& at, i32 row) {
#pragma unroll 1
    for (i32 s = 0; s < kTiles; ++s) {
      const float4 sum = arch::load_floats(folder.slots + s * 2048);
#pragma unroll
      for (i32 half = 0; half < 2; ++half) {
        const i32 t = at.begin + row + half * 8;
        if (t >= at.end) continue;
        u8* const to =
            a.dx.data + (at.b * a.dx.stride[0] + t * a.dx.stride[1] + at.h * a.dx.stride[2]) * size_of(kOut);
        const float first = half == 0 ? sum.x : sum.z, second = half == 0 ? sum.y : sum.w;
        put_pair<kOut>(to, 4 * s + i32(lane() % 4), first, second);
      }
    }
  }
};

}  // namespace heddle::device::sympow_mma_backward
