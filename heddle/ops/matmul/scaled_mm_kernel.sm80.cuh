// scaled_mm as a whole kernel of mma.sync, from sm_89 on: for devices without wgmma, and for scales that the kernel with wgmma does
// not take. All threads copy slabs of 128 k of both matrices, some early, and each warp multiplies its rows and columns of them.
// The sums of a slab are added to others in f32, times their scales where these are of blocks. A sum has its terms in the order of
// k, and no constant but kPromotes and kScales changes a bit.
#pragma once

#include "heddle/kit/arch/matrices.cuh"
#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/arch/mma.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/move/store_pair.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/matmul/product_memory.h"
#include "heddle/ops/matmul/scaled_mm.h"
#include "heddle/tile/raster.h"

namespace heddle::device::scaled_mm {

#include "heddle/ops/matmul/scales_at.cuh"

struct KernelConfig {
  static constexpr i32 kKernel = 1;
  static constexpr i32 kRows = 128, kColumns = 128;  // a CTA's tile has them
  static constexpr i32 kRowWarps = 4, kColWarps = 2;
  static constexpr i32 kStages = 3;    // slabs in flight
  static constexpr i32 kPromotes = 1;  // sums of a slab are added in f32
  static constexpr i32 kScales =
      1;  // 1: each sum has one scale; for each 128 k it has one, 2: that 128 columns share; 3: of its column
};

template <class Config>
struct Kernel {
  static constexpr ScaledMm kTypes = Config::types();
  static constexpr DType kLeft = kTypes.a.data.dtype, kRight = kTypes.b.data.dtype, kOut = kTypes.y.dtype;
  static constexpr i32 kRows = Config::kRows, kColumns = Config::kColumns, kStages = Config::kStages;
  static constexpr i32 kRowWarps = Config::kRowWarps, kColWarps = Config::kColWarps;
  static constexpr i32 kRowBlocks = kRows / (16 * kRowWarps), kColBlocks = kColumns / (8 * kColWarps);
  static constexpr i32 kSlabRow = kScaleBlock;  // bytes of a row of a slab, and k
  static constexpr i32 kRightAt = kRows * kSlabRow, kSlabBytes = product_slab_bytes(kRows, kColumns);
  static constexpr tile::Budget kBudget = warp_product_budget(kRows, kColumns, kStages);
  static constexpr bool kPromotes = Config::kPromotes != 0, kBlocks = Config::kScales > 1;
  static constexpr u32 kThreads = 32 * kRowWarps * kColWarps;
  static_assert(arch::kMultipliesCodes && (kPromotes || !kBlocks));
  static_assert(kRowBlocks * 16 * kRowWarps == kRows && kColBlocks * 8 * kColWarps == kColumns);
  static_assert(kColBlocks % 2 == 0 && kScaleBlock % kColumns == 0);
  using Sums = float[kRowBlocks][kColBlocks][4];

  static void run(const ScaledMm& a, const TensorMap*, u8*) {
    const i32 rows = (a.rows() + kRows - 1) / kRows, columns = (a.columns() + kColumns - 1) / kColumns;
    const tile::TileAt tile = tile::GroupedRaster{rows, columns, 8}.at(i32(blockIdx.x));
    const i32 m = tile.row * kRows, n = tile.col * kColumns, steps = (a.terms() + kSlabRow - 1) / kSlabRow;
    SlabCopy<kRows> left(a.a.data, m);
    SlabCopy<kColumns> right(a.b.data, n);
    u8* const slabs = arch::dynamic_shared() + kBudget.offset("slabs");
    const auto fill = [&](i32 step) {
      u8* const slab = slabs + step % kStages * kSlabBytes;
      if (step < steps) left.begin(slab), right.begin(slab + kRightAt);
      arch::commit_copies();
    };
    for (i32 step = 0; step < kStages - 1; ++step) fill(step);
    Sums sums = {};
#pragma unroll 1
    for (i32 step = 0; step < steps; ++step) {
      const u8* const slab = slabs + step % kStages * kSlabBytes;
      arch::wait_copies(kStages - 2);
      __syncthreads();  // all copies of the slab are there, and all have read the one that is filled next
      fill(step + kStages - 1);
      if constexpr (kPromotes)
        add_promoted(sums, slab, a, m, n, step);
      else
        add_products(sums, slab);
    }
    store(sums, a, m, n);
  }

 private:
  // Where 16-byte word `word` of a row of a slab lies.
  static constexpr i32 place(i32 row, i32 word) { return row * kSlabRow + (word ^ (row & 7)) * 16; }

  // The words of one side's slabs that a thread copies: one word of every kRowsAtOnce-th row.
  template <i32 kHigh>
  class SlabCopy {
   public:
    // `first`: the tile's first row of the data.
    SlabCopy(const Tensor& data, i32 first)
        : stride_(data.stride[0]),
          from_(data.data + i64(first + row()) * stride_ + 16 * word()),
          rows_(data.size[0] - first - row()),
          bytes_(data.size[1] - 16 * word()) {}

    // Begins the copies of the next slab. It writes zeros past the ends and reads no memory there.
    void begin(u8* to) {
#pragma unroll
      for (i32 i = 0; i < kHigh / kRowsAtOnce; ++i) {
        const i32 bytes = i * kRowsAtOnce < rows_ ? max(0, min(bytes_, 16)) : 0;
        arch::copy_bytes(to + place(row() + i * kRowsAtOnce, word()), from_ + i * kRowsAtOnce * stride_,
                         bytes);
      }
      from_ += kSlabRow, bytes_ -= kSlabRow;
    }

   private:
    static constexpr i32 kRowsAtOnce = i32(kThreads) / 8;
    static_assert(kHigh % kRowsAtOnce == 0);
    static i32 row() { return i32(threadIdx.x) / 8; }
    static i32 word() { return i32(threadIdx.x) % 8; }

    i64 stride_;  // bytes
    const u8* from_;
    i32 rows_, bytes_;  // that are left from the thread's first word on
  };

  static i32 warp_row() { return i32(threadIdx.x / 32) % kRowWarps * (16 * kRowBlocks); }
  static i32 warp_col() { return i32(threadIdx.x / 32) / kRowWarps * (8 * kColBlocks); }
  // The row of sum i of a lane's four of a block, and the column of sum 0, from the warp's first on.
  static i32 row_of(i32 block, i32 half) { return 16 * block + i32(lane()) / 4 + 8 * half; }
  static i32 col_of(i32 block) { return 8 * block + i32(lane()) % 4 * 2; }

  static __forceinline__ void add_products(Sums& sums, const u8* slab) {
    const i32 of_left = warp_row() + i32(lane()) % 16,
              of_right = warp_col() + i32(lane() / 16 * 8 + lane() % 8);
#pragma unroll
    for (i32 k = 0; k < kSlabRow / 32; ++k) {
      u32 columns[kColBlocks / 2][4];  // two blocks: words 2 k and 2 k + 1 of each
#pragma unroll
      for (i32 j = 0; j < kColBlocks / 2; ++j)
        arch::load_matrices(columns[j],
                            slab + kRightAt + place(of_right + 16 * j, 2 * k + i32(lane()) / 8 % 2));
#pragma unroll
      for (i32 i = 0; i < kRowBlocks; ++i) {
        u32 rows[4];
        arch::load_matrices(rows, slab + place(of_left + 16 * i, 2 * k + i32(lane()) / 16));
#pragma unroll
        for (i32 j = 0; j < kColBlocks; ++j)
          arch::multiply_codes<kLeft, kRight>(sums[i][j], rows,
                                              {columns[j / 2][j % 2 * 2], columns[j / 2][j % 2 * 2 + 1]});
      }
    }
  }

  // The scales of a thread's rows and columns, of one group of 128 k.
  struct Factors {
    float rows[kRowBlocks][2], columns[kColBlocks][2];

    Factors(const ScaledMm& a, i32 m, i32 n, i32 group) {
      const ScalesAt of_a(a.scale_a), of_b(a.scale_b);
      const i32 per = a.scale_b.cols() == a.columns() ? 1 : kScaleBlock;
#pragma unroll
      for (i32 i = 0; i < 2 * kRowBlocks; ++i)
        rows[i / 2][i % 2] = of_a.get(min(m + row_of(i / 2, i % 2), a.rows() - 1), group);
#pragma unroll
      for (i32 j = 0; j < 2 * kColBlocks; ++j)
        columns[j / 2][j % 2] = Config::kScales == 2 && j > 0
                                    ? columns[0][0]
                                    : of_b.get(group, min(n + col_of(j / 2) + j % 2, a.columns() - 1) / per);
    }
    float get(i32 i, i32 j, i32 sum) const { return rows[i][sum / 2] * columns[j][sum % 2]; }
  };

  static __forceinline__ void add_promoted(Sums& sums, const u8* slab, const ScaledMm& a, i32 m, i32 n,
                                           i32 step) {
    Sums part = {};
    if constexpr (kBlocks) {
      const Factors factors(a, m + warp_row(), n + warp_col(), step);
      add_products(part, slab);
      each([&](i32 i, i32 j, i32 s) {
        sums[i][j][s] = fma(part[i][j][s], factors.get(i, j, s), sums[i][j][s]);
      });
    } else {
      add_products(part, slab);
      each([&](i32 i, i32 j, i32 s) { sums[i][j][s] += part[i][j][s]; });
    }
  }
  template <class F>
  static __forceinline__ void each(F&& f) {
#pragma unroll
    for (i32 i = 0; i < kRowBlocks; ++i)
#pragma unroll
      for (i32 j = 0; j < kColBlocks; ++j)
#pragma unroll
        for (i32 s = 0; s < 4; ++s) f(i, j, s);
  }

  static void store(Sums& sums, const ScaledMm& a, i32 m, i32 n) {
    m += warp_row(), n += warp_col();
    if constexpr (!kBlocks) {
      const Factors factors(a, m, n, 0);
      each([&](i32 i, i32 j, i32 s) { sums[i][j][s] *= factors.get(i, j, s); });
    }
#pragma unroll
    for (i32 i = 0; i < 2 * kRowBlocks; ++i) {
      const i32 row = m + row_of(i / 2, i % 2);
      if (row >= a.rows()) continue;
#pragma unroll
      for (i32 j = 0; j < kColBlocks; ++j)
        store_pair<kOut>(a.y, row, n + col_of(j), sums[i / 2][j][i % 2 * 2], sums[i / 2][j][i % 2 * 2 + 1]);
    }
  }
};

}  // namespace heddle::device::scaled_mm
