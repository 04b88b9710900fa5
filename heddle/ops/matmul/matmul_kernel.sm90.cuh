// matmul, bmm and scaled_mm as whole kernels on sm_90a. One thread brings slabs of both matrices by bulk copies, 128 bytes of k at a
// time, and one or two groups of four warps multiply them, 64 or 128 rows each. A cluster is two CTAs along M that share the slabs of b,
// two along N that share those of a, or some that have parts of k. CTAs go from tile to tile, of all batches; sums leave by bulk stores while the next tile is
// multiplied. Bulk copies fill what lies outside of a matrix with zeros and clip what is stored. A sum has its terms in the order of
// k, in each of kSplit parts of them. No other constant but kPromotes and kScales changes a bit.
// Grouped ops find the group of a tile, or the terms of a group, in memory: tiles have rows of one group, and slabs terms of one.
#pragma once

#include "heddle/kit/arch/bulk.cuh"
#include "heddle/kit/arch/cluster.cuh"
#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/pairs.cuh"
#include "heddle/kit/arch/thread.cuh"
#include "heddle/kit/arch/wgmma.cuh"
#include "heddle/kit/arch/wgmma_products.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/move/chip.cuh"
#include "heddle/kit/move/copy_lines.cuh"
#include "heddle/kit/move/exchange.cuh"
#include "heddle/kit/move/next_tile.cuh"
#include "heddle/kit/move/roles.cuh"
#include "heddle/kit/move/slot_ring.cuh"
#include "heddle/kit/move/store_pair.cuh"
#include "heddle/kit/move/store_tile.cuh"
#include "heddle/kit/move/tile_mma.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/matmul/matmul.h"
#include "heddle/ops/matmul/operand_copy.h"
#include "heddle/ops/matmul/product_memory.h"
#include "heddle/tile/raster.h"

namespace heddle::device::matmul {

struct KernelConfig {
  static constexpr i32 kKernel = 1;
  static constexpr i32 kRows = 128, kColumns = 256;  // a CTA's tile has them
  static constexpr i32 kBrought = kRows;         // rows of a that are brought; a tile's others are not stored
  static constexpr i32 kSlabs = 1, kStages = 4;  // slabs of 64 k in a stage; stages in flight
  static constexpr i32 kCluster = 1;             // CTAs along M that share b
  static constexpr i32 kAcross = 1;              // CTAs along N that share a
  static constexpr i32 kSplit = 1;               // parts of k, each in a CTA of its own
  static constexpr i32 kTurned = 0;              // 1: tiles are those of y' = b' a', and b' stands for a
  // These serve matrices whose lines or pointers are no multiples of 16 bytes.
  static constexpr i32 kCopies = 0;  // operands that are copied first: kCopiesA, kCopiesB
  static constexpr i32 kDirect = 0;  // 1: threads store y
  // These serve fp8. Products add with 14 bits of fraction: the sums of each slab are added to others in f32 (DeepSeek-V3, section 3.3.2).
  static constexpr i32 kPromotes = 0;
  static constexpr i32 kScales =
      0;  // 1: of rows and of columns; 2: of a's rows and b's 128 columns, for each 128 k
};

constexpr arch::Terms terms_of(DType a, DType b) {
  if (a == DType::kBf16) return arch::Terms::kBf16;
  if (a == DType::kF16) return arch::Terms::kF16;
  if (a == DType::kF32) return arch::Terms::kTf32;
  if (a == DType::kF8E4M3) return b == a ? arch::Terms::kE4m3 : arch::Terms::kE4m3E5m2;
  return b == a ? arch::Terms::kE5m2 : arch::Terms::kE5m2E4m3;
}

#include "heddle/ops/matmul/scales_at.cuh"
#include "heddle/ops/matmul/tile_places.cuh"

// Adds a thread's sums of one slab to others: as they are, or times the scales of its two rows and of every 64 columns.
template <i32 kScales, i32 kColumns>
struct SumFactors {
  // kFirst: the first column of `part`.
  template <i32 kFirst, i32 kPart>
  void add(float (&sums)[kColumns / 2], const float (&part)[kPart]) const {
#pragma unroll
    for (i32 i = 0; i < kPart; ++i) sums[kFirst / 2 + i] += part[i];
  }
};
template <i32 kColumns>
struct SumFactors<2, kColumns> {
  static constexpr i32 kParts = kColumns / 64;
  float rows[2], columns[kParts];

  template <i32 kFirst, i32 kPart>
  void add(float (&sums)[kColumns / 2], const float (&part)[kPart]) const {
#pragma unroll
    for (i32 i = 0; i < kPart; ++i) {
      float& sum = sums[kFirst / 2 + i];
      sum = __fmaf_rn(part[i], rows[i / 2 % 2] * columns[(kFirst / 2 + i) / 32], sum);
    }
  }
};

// The factors of one slab after another. A warp copies those of its 16 rows and of the columns to memory on chip, some slabs early,
// so that they wait in no register.
template <i32 kScales, i32 kColumns>
struct FactorWalk {
  using Factors = SumFactors<kScales, kColumns>;
  static constexpr u32 kBytes = 0;  // a group takes them

  template <class Args>
  FactorWalk(const Args&, i32, i32, i32, arch::OnChip) {}
  Factors next() { return {}; }
};
template <i32 kColumns>
struct FactorWalk<2, kColumns> {
  using Factors = SumFactors<2, kColumns>;
  static constexpr i32 kDepth = kScaleSlabs;
  static constexpr u32 kStageBytes = kScaleStage, kBytes = 4 * kDepth * kStageBytes;

  // m and n: the tile's first row and column. `steps`: slabs. `chip`: kBytes of the group's.
  template <class Args>
  FactorWalk(const Args& args, i32 m, i32 n, i32 steps, arch::OnChip chip)
      : stages_(chip + threadIdx.x / 32 % 4 * (kDepth * kStageBytes)), left_(steps) {
    const ScalesAt a(args.scale_a), b(args.scale_b);
    const i32 lane = i32(threadIdx.x % 32), row = m + i32(threadIdx.x / 32 % 4 * 16) + lane % 16,
              part = min(lane % 16, Factors::kParts - 1);
    const bool is_row = lane < 16;
    from_ = is_row ? a.data + i64(min(row, args.rows() - 1)) * a.row
                   : b.data + i64(min(n + part * 64, args.columns() - 1) / 128) * b.column;
    step_ = is_row ? a.column : b.row;
    __syncwarp();  // all have read those of the tile before
    for (i32 i = 0; i < kDepth - 1; ++i) begin_copy();
  }
  Factors next() {
    arch::wait_copies_but<kDepth - 2>();
    __syncwarp();  // what the others copied is there, and all have read the stage that is filled next
    begin_copy();
    const arch::OnChip stage = stages_ + at_ % kDepth * kStageBytes;
    ++at_;
    Factors factors;
#pragma unroll
    for (i32 half = 0; half < 2; ++half)
      factors.rows[half] = arch::load_float(stage + (lane() / 4 + half * 8) * 4);
#pragma unroll
    for (i32 p = 0; p < Factors::kParts; ++p) factors.columns[p] = arch::load_float(stage + (64 + p * 4));
    return factors;
  }

 private:
  void begin_copy() {
    if (left_ > 0) arch::copy_float(stages_ + begun_ % kDepth * kStageBytes + lane() * 4, from_);
    arch::commit_copies();
    from_ += step_, --left_, ++begun_;
  }

  arch::OnChip stages_;
  const float* from_;
  i32 step_, left_;
  u32 at_ = 0, begun_ = 0;
};

// Multiplies a thread's sums from row m and column n on by the scales of their rows and columns.
template <i32 kSums, class Args>
inline void scale_sums(float (&sums)[kSums], const Args& a, i32 m, i32 n) {
  const ScalesAt of_a(a.scale_a), of_b(a.scale_b);
  float rows[2];
#pragma unroll
  for (i32 half = 0; half < 2; ++half)
    rows[half] =
        of_a.data[min(m + i32(threadIdx.x / 32 % 4 * 16 + lane() / 4) + half * 8, a.rows() - 1) * of_a.row];
#pragma unroll
  for (i32 j = 0; j < kSums / 4; ++j) {
    if (j % 4 == 0) arch::hold_order();  // all loads at once would take more registers than there are
#pragma unroll
    for (i32 i = 0; i < 2; ++i) {
      const float column = of_b.data[min(n + j * 8 + i32(lane() % 4) * 2 + i, a.columns() - 1) * of_b.column];
      sums[j * 4 + i] *= rows[0] * column, sums[j * 4 + 2 + i] *= rows[1] * column;
    }
  }
}

// Copies the operands that bulk copies cannot bring to the workspace, one after the other.
template <class Config>
struct CopyKernel {
  using Args = decltype(Config::types());
  static constexpr Args kTypes = Config::types();
  static constexpr u32 kThreads = 256;

  static void run(const Args& a, const TensorMap*, u8* workspace) {
    if constexpr ((Config::kCopies & kCopiesA) != 0) {
      copy<size_of(kTypes.a.data.dtype)>(a.a.data, workspace);
      workspace += OperandCopy(a.a.data).all();
    }
    if constexpr ((Config::kCopies & kCopiesB) != 0) copy<size_of(kTypes.b.data.dtype)>(a.b.data, workspace);
  }
  template <i32 kBytes>
  static void copy(const Tensor& data, u8* to) {
    const OperandCopy made(data);
    copy_lines<kBytes>(u32(made.lines), made.bytes, to, made.pitch, [&](u32 line) {
      if constexpr (kTypes.y.rank == 2) return data.data + line * data.stride[0] * kBytes;
      const u32 matrix = line / u32(data.size[1]), row = line - matrix * u32(data.size[1]);
      return data.data + (matrix * data.stride[0] + row * data.stride[1]) * kBytes;
    });
  }
};

template <class Config>
struct Kernel {
  using Args = decltype(Config::types());
  static constexpr Args kTypes = Config::types();
  static constexpr DType kOut = kTypes.y.dtype;
  static constexpr arch::Terms kTerms = terms_of(kTypes.a.data.dtype, kTypes.b.data.dtype);
  static constexpr bool kBatched = kTypes.y.rank == 3;
  static constexpr bool kGrouped =
      requires(const Args& args) { args.ends; };  // rows are, or with batches terms
  static constexpr bool kTurned = Config::kTurned != 0;
  // k is adjacent.
  static constexpr bool kRowsA = kTurned ? kTypes.b.transposed : !kTypes.a.transposed,
                        kRowsB = kTurned ? !kTypes.a.transposed : kTypes.b.transposed;
  static constexpr arch::Major kMajorA = kRowsA ? arch::Major::kK : arch::Major::kOuter;
  static constexpr arch::Major kMajorB = kRowsB ? arch::Major::kK : arch::Major::kOuter;

  static constexpr i32 kRows = Config::kRows, kColumns = Config::kColumns, kCluster = Config::kCluster;
  static constexpr i32 kBrought = kRowsA ? Config::kBrought : kRows;
  static constexpr i32 kSlabs = Config::kSlabs, kStages = Config::kStages;
  static constexpr i32 kSlabK = 128 / size_of(kTypes.a.data.dtype);
  static constexpr i32 kSplit = Config::kSplit, kAcross = Config::kAcross, kScales = Config::kScales;
  static constexpr i32 kSharing = kCluster * kAcross, kInCluster = kSharing * kSplit;
  using Walk = FactorWalk<kScales, kColumns>;
  static constexpr i32 kWide = brought_columns(kColumns, kMajorB);
  static constexpr ProductTile kTile{kRows, kColumns, kWide, kSlabs, kSplit, kScales};
  static constexpr tile::OperandTile kTileA = product_operand(kRows, size_of(kTypes.a.data.dtype), kMajorA),
                                     kTileB = product_operand(kWide, size_of(kTypes.b.data.dtype), kMajorB);
  static constexpr tile::Budget kBudget = product_budget(kTile, size_of(kOut), kStages);
  static constexpr u32 kGroups = kTile.groups(), kThreads = kBudget.threads();
  static constexpr i32 kBlocks = kTile.blocks();  // a group has blocks of 64 rows
  using Sums = float[kBlocks][kColumns / 2];
  static constexpr i32 kSlab = kTileA.bytes() + kTileB.bytes();
  using Ring = SlotRing<kStages, u32(kSlabs* kSlab)>;
  // A CTA stores kOwn columns of a tile: groups store kPart of them at once as boxes, or their threads store them.
  static constexpr i32 kOwn = kTile.own(), kPart = kTile.part();
  static constexpr u32 kStage = stored_tile(kTile, size_of(kOut)).bytes();
  using Parts = Exchange<kSplit == 1 ? 8 : kColumns / 2, kSplit == 1 ? 2 : kSplit>;
  static constexpr u32 kParts = kSplit > 1 ? Parts::kBytes : 0;
  static_assert(kSharing == 1 || kSplit == 1);
  static_assert(kAcross == 1 || (kBrought == kRows && kRows % (64 * kAcross) == 0));
  static_assert(kBrought % 8 == 0 && kBrought <= kRows && (kBrought == kRows || kRows == 64));
  static_assert(kRows == 64 * kBlocks * i32(kGroups) && kSlab % 1024 == 0);
  static_assert(!kTurned || (kSplit == 1 && kScales == 0 && !Config::kDirect && kPart > 0));
  static_assert(kBlocks == 1 || (kSplit == 1 && kScales == 0 && Config::kPromotes == 0));
  static_assert(kColumns % (8 * kCluster) == 0);

  static constexpr bool kPromotes = Config::kPromotes != 0, kDirect = Config::kDirect != 0;
  static_assert(!kPromotes ||
                (kSlabK == 128 && kSlabs == 1 && kSplit == 1 && (kColumns <= 128 || kColumns % 16 == 0)));
  static_assert(kScales != 2 || (kPromotes && kColumns % 64 == 0));

  static constexpr i32 kPartSlabs = 2;  // parts of k are multiples of so many slabs
  static_assert(kSplit == 1 || kPartSlabs % kSlabs == 0);

  struct Sizes {
    i32 rows, columns, steps;  // tiles of a batch; k in stages
    i32 tiles;                 // all batches have
    i32 first = 0;             // the slab that this CTA begins with
    EveryTile<kInCluster> mine;
    u32 rank;

    explicit Sizes(const Args& a) {
      rank = kInCluster > 1 ? arch::cta_in_cluster() : 0;
      const i32 m = kTurned ? a.columns() : a.rows(), n = kTurned ? a.rows() : a.columns();
      rows = (m + kRows * kCluster - 1) / (kRows * kCluster);
      columns = (n + kColumns * kAcross - 1) / (kColumns * kAcross);
      tiles = rows * columns * a.batches();
      i32 slabs = (a.terms() + kSlabK - 1) / kSlabK;
      if constexpr (kSplit > 1) {
        const i32 part = (slabs + kSplit * kPartSlabs - 1) / (kSplit * kPartSlabs) * kPartSlabs;
        first = i32(rank) * part;
        slabs = min(part, slabs - first);
      }
      steps = (slabs + kSlabs - 1) / kSlabs;
    }
    // Number t of all tiles: its place in its batch, and the batch.
    struct Place : tile::TileAt {
      i32 batch;
    };
    Place place(i32 t) const {
      const i32 batch = kBatched ? t / (rows * columns) : 0;
      return {tile::GroupedRaster{rows, columns, 8}.at(kBatched ? t - batch * (rows * columns) : t), batch};
    }
    // The slab that a tile begins with, its stages, and its matrix of b.
    struct Work {
      i32 first, steps, matrix;
    };
    Work work(const Args& a, const Place& tile) const {
      if constexpr (kGrouped) {
        const GroupEnds groups(a.ends);
        if constexpr (kBatched) {
          const i32 begin = groups.begin(tile.batch), terms = groups.end(tile.batch) - begin;
          return {begin / kSlabK, terms / (kSlabK * kSlabs), tile.batch};
        }
        const i32 group = groups.of(tile.row * kRows);
        return {0, group < groups.count ? steps : 0, group};
      } else {
        return {first, steps, tile.batch};
      }
    }
    // The row and the column that this CTA begins with in a cluster's tile.
    i32 row_of(const tile::TileAt& tile) const {
      return (tile.row * kCluster + i32(kSplit > 1 ? 0 : rank % kCluster)) * kRows;
    }
    i32 column_of(const tile::TileAt& tile) const {
      return (tile.col * kAcross + i32(kSplit > 1 ? 0 : rank / kCluster)) * kColumns;
    }
  };

  static void run(const Args& a, const TensorMap* maps, u8*) {
    const Ring ring{chip() + kBudget.offset("ring"), chip() + kBudget.offset("of ring")};
    if (threadIdx.x == 0) {
      for (i32 m = 0; m < (kDirect ? 2 : 3); ++m) arch::prefetch_map(maps + m);
      if constexpr (kSplit > 1)
        for (u32 g = 0; g < kGroups; ++g)
          Parts::init(chip() + (kBudget.offset("of sums") + g * Parts::kBarrierBytes));
      ring.init(kGroups * kSharing);
    }
    if constexpr (kInCluster > 1)
      arch::sync_cluster();
    else
      __syncthreads();
    const Sizes sizes(a);
    if (threadIdx.x < 128) {
      enter<Kernel, "bring">();
      if (threadIdx.x == 0) produce(ring, sizes, a, maps);
    } else {
      enter<Kernel, "multiply">();
      multiply(ring, sizes, a, maps);
    }
    if constexpr (kInCluster > 1) arch::sync_cluster();  // nobody leaves while others may arrive here
  }

  static void produce(const Ring& ring, const Sizes& sizes, const Args& a, const TensorMap* maps) {
    typename Ring::Place place;
#pragma unroll 1
    for (i32 t = sizes.mine.first; t < sizes.tiles; t += sizes.mine.stride) {
      const typename Sizes::Place tile = sizes.place(t);
      const i32 m = sizes.row_of(tile), n = sizes.column_of(tile);
      const typename Sizes::Work work = sizes.work(a, tile);
#pragma unroll 1
      for (i32 step = 0; step < work.steps; ++step, place.next()) {
        ring.begin(place, kSlabs * (kBrought * 128 + kTileB.bytes()));
#pragma unroll
        for (i32 s = 0; s < kSlabs; ++s) {
          const arch::OnChip to = ring.slot(place) + s * kSlab;
          const i32 k = (work.first + step * kSlabs + s) * kSlabK;
          bring_a(to, ring.full(place), maps, corner<kTypes.a.data.rank>(m, k, tile.batch),
                  kSharing > 1 ? sizes.rank : 0);
          bring_b(to + kTileA.bytes(), ring.full(place), maps + 1,
                  corner<kTypes.b.data.rank>(n, k, work.matrix), kSharing > 1 ? sizes.rank : 0);
        }
      }
    }
  }
  // Each CTA of those that share an operand brings its part to all of them.
  template <class Corner>
  static void bring_a(arch::OnChip to, arch::OnChip full, const TensorMap* map, Corner at, u32 rank) {
    const u32 part = rank / kCluster, first = rank % kCluster;  // CTAs with the same rows: every kCluster-th
    u16 all = 0;
#pragma unroll
    for (i32 i = 0; i < kAcross; ++i) all |= u16(1u << (first + i * kCluster));
    if constexpr (kRowsA) {
      constexpr i32 kMine = kRows / kAcross;  // what the map's box has of them
      at.x += i32(part) * kMine;
      load<kAcross>(all, to + part * u32(tile::row_bytes(kTileA, kMine)), map, full, turned(at));
    } else {
      load_blocks<kAcross, kTileA>(all, part, to, map, full, at);
    }
  }
  template <class Corner>
  static void bring_b(arch::OnChip to, arch::OnChip full, const TensorMap* map, Corner at, u32 rank) {
    const u32 part = rank % kCluster;
    const u16 all = u16(((1u << kCluster) - 1) << (rank - part));
    if constexpr (kRowsB) {
      constexpr i32 kMine = kColumns / kCluster;
      at.x += i32(part) * kMine;
      load<kCluster>(all, to + part * u32(tile::row_bytes(kTileB, kMine)), map, full, turned(at));
    } else {
      load_blocks<kCluster, kTileB>(all, part, to, map, full, at);
    }
  }
  template <i32 kCtas, tile::OperandTile kOperand, class Corner>
  static void load_blocks(u16 ctas, u32 part, arch::OnChip to, const TensorMap* map, arch::OnChip full,
                          Corner at) {
#pragma unroll
    for (i32 j = 0; j < kOperand.blocks(); ++j, at.x += 64)
      if (kCtas == 1 || u32(j % kCtas) == part)
        load<kCtas>(ctas, to + j * kOperand.block_bytes(), map, full, at);
  }
  template <i32 kCtas, class Corner>
  static void load(u16 ctas, arch::OnChip to, const TensorMap* map, arch::OnChip full, Corner at) {
    if constexpr (kCtas > 1)
      arch::load_box_to(ctas, to, map, full, at);
    else
      arch::load_box(to, map, full, at);
  }

  static void multiply(const Ring& ring, const Sizes& sizes, const Args& a, const TensorMap* maps) {
    const u32 group = threadIdx.x / 128 - 1, member = threadIdx.x % 128;
    const arch::OnChip stage = chip() + (kBudget.offset("stored") + group * kStage);
    Parts parts(chip() + (kBudget.offset("sums") + group * kParts),
                chip() + (kBudget.offset("of sums") + group * Parts::kBarrierBytes));
    typename Ring::Place place, done;
    const auto release = [&] {
      if (member < u32(kSharing)) {
        if constexpr (kSharing > 1)
          ring.release_at(done, member);
        else
          ring.release(done);
      }
      done.next();
    };
#pragma unroll 1
    for (i32 t = sizes.mine.first; t < sizes.tiles; t += sizes.mine.stride) {
      const typename Sizes::Place tile = sizes.place(t);
      const i32 m = sizes.row_of(tile) + i32(group) * kBlocks * 64, n = sizes.column_of(tile);
      const i32 steps = sizes.work(a, tile).steps;
      Sums sums;
      if constexpr (kPromotes)
        add_promoted(sums[0], ring, place, release, steps, group,
                     Walk(a, m, n, steps, chip() + (kBudget.offset("scales") + group * Walk::kBytes)));
      else
        add_in_place(sums, ring, place, release, steps, group);
#pragma unroll
      for (i32 block = 0; block < kBlocks; ++block) {
        const Target target{stage, maps + 2, &a, 1 + group, m + block * 64, tile.batch};
        finish_as<0>(sizes.rank, sums[block], parts, target, n);
      }
    }
    if (member == 0) arch::wait_stores_read<0>();
  }
  template <class Release>
  static void add_in_place(Sums& sums, const Ring& ring, typename Ring::Place& place, const Release& release,
                           i32 steps, u32 group) {
    keep_blocks(sums);
#pragma unroll 1
    for (i32 step = 0; step < steps; ++step, place.next()) {
      ring.wait(place);
      arch::begin_products();
#pragma unroll
      for (i32 s = 0; s < kSlabs; ++s)
        multiply_slab(sums, ring.slot(place) + s * kSlab, group, step > 0 || s > 0);
      arch::commit_products();
      if (step > 0) {
        arch::wait_products<1>();
        release();
      }
    }
    arch::wait_products<0>();
    keep_blocks(sums);
    if constexpr (kGrouped)
      if (steps == 0) return clear(sums);  // here, after all products: else the compiler runs them one by one
    release();
  }
  // Each slab has sums of its own, which are added to all when they are there. The other group's products run meanwhile.
  template <class Release>
  static void add_promoted(float (&sums)[kColumns / 2], const Ring& ring, typename Ring::Place& place,
                           const Release& release, i32 steps, u32 group, Walk walk) {
#pragma unroll
    for (i32 i = 0; i < kColumns / 2; ++i) sums[i] = 0;
    // With scales of blocks, halves take longer (H100).
    if constexpr (kColumns > 128 && kScales != 2)
      return add_halves(sums, ring, place, release, steps, group, walk);
    float part[kColumns / 2];
#pragma unroll 1
    for (i32 step = 0; step < steps; ++step, place.next()) {
      ring.wait(place);
      begin_part(part, ring.slot(place), 0, group);
      const typename Walk::Factors now = walk.next();
      arch::wait_products<0>();
      arch::keep(part);
      release();
      now.template add<0>(sums, part);
    }
  }
  // Does the same where the products of a half of the columns run while the sums of the other half are added.
  template <class Release>
  static void add_halves(float (&sums)[kColumns / 2], const Ring& ring, typename Ring::Place& place,
                         const Release& release, i32 steps, u32 group, Walk& walk) {
    constexpr i32 kHalf = kColumns / 2;
    float first[kHalf / 2], second[kHalf / 2];
    ring.wait(place);
    begin_part(first, ring.slot(place), 0, group);
    begin_part(second, ring.slot(place), kHalf, group);
    typename Walk::Factors now = walk.next();
    arch::wait_products<1>();
    arch::keep(first);
    now.template add<0>(sums, first);
    place.next();
#pragma unroll 1
    for (i32 step = 1; step < steps; ++step, place.next()) {
      ring.wait(place);
      begin_part(first, ring.slot(place), 0, group);
      arch::wait_products<1>();
      arch::keep(second);
      release();
      now.template add<kHalf>(sums, second);
      begin_part(second, ring.slot(place), kHalf, group);
      now = walk.next();
      arch::wait_products<1>();
      arch::keep(first);
      now.template add<0>(sums, first);
    }
    arch::wait_products<0>();
    arch::keep(second);
    release();
    now.template add<kHalf>(sums, second);
  }
  // part = a slab's products with the columns from `column` on.
  template <i32 kPartSums>
  static void begin_part(float (&part)[kPartSums], arch::OnChip slab, i32 column, u32 group) {
    const arch::OnChip b = slab + (kTileA.bytes() + tile::row_bytes(kTileB, column));
    arch::keep(part);
    arch::begin_products();
    tile_mma<kTerms, kTileA, kTileB>(part, rows_of(slab, group), arch::descriptor<kTileB>(b), false);
    arch::commit_products();
  }
  static void multiply_slab(Sums& sums, arch::OnChip slab, u32 group, bool add) {
#pragma unroll
    for (i32 block = 0; block < kBlocks; ++block)
      tile_mma<kTerms, kTileA, kTileB>(sums[block], rows_of(slab, group, block),
                                       arch::descriptor<kTileB>(slab + kTileA.bytes()), add);
  }
  static void clear(Sums& sums) {
#pragma unroll
    for (auto& block : sums)
#pragma unroll
      for (float& sum : block) sum = 0;
  }
  static void keep_blocks(Sums& sums) {
#pragma unroll
    for (i32 block = 0; block < kBlocks; ++block) arch::keep(sums[block]);
  }
  // A block of a group's rows of a.
  static u64 rows_of(arch::OnChip slab, u32 group, i32 block = 0) {
    return arch::descriptor<kTileA>(slab + (group * kBlocks + u32(block)) * u32(tile::row_bytes(kTileA, 64)));
  }

  // Where a group stores: through its stage, or straight to memory.
  struct Target {
    arch::OnChip stage;
    const TensorMap* map;
    const Args* args;
    u32 barrier;
    i32 m, batch;
  };
  // Calls finish with the rank as a constant, since sums in registers have constant places.
  template <i32 kRank>
  static void finish_as(u32 rank, float (&sums)[kColumns / 2], Parts& parts, const Target& to, i32 n) {
    if constexpr (kRank + 1 < kSplit)
      if (rank != u32(kRank)) return finish_as<kRank + 1>(rank, sums, parts, to, n);
    finish<kRank>(sums, parts, to, n);
  }
  template <i32 kRank>
  static void finish(float (&sums)[kColumns / 2], Parts& parts, const Target& to, i32 n) {
    if constexpr (kSplit > 1) parts.template add<kRank>(sums, to.barrier);
    auto& own = reinterpret_cast<float(&)[kOwn / 2]>(sums[kRank * kOwn / 2]);
    if constexpr (kScales == 1) scale_sums(own, *to.args, to.m, n + kRank * kOwn);
    store(own, to, n + kRank * kOwn);
  }
  static void store(const float (&sums)[kOwn / 2], const Target& to, i32 n) {
    if constexpr (kDirect && kPart > 0) return store_anywhere<0>(sums, to, n);
    if constexpr (kPart > 0) {
#pragma unroll
      for (i32 part = 0; part < kOwn / kPart; ++part)
        store_part<kPart>(sums + part * (kPart / 2), to, n + part * kPart);
      // Writes some columns again, with the same sums: threads would take longer to store the others.
      if constexpr (kOwn % kPart != 0) store_part<kPart>(sums + (kOwn - kPart) / 2, to, n + kOwn - kPart);
      return;
    }
    const u32 warp = threadIdx.x / 32 % 4;
    const auto& y = to.args->result(to.batch);
#pragma unroll
    for (i32 j = 0; j < kOwn / 8; ++j)
#pragma unroll
      for (i32 half = 0; half < 2; ++half) {
        const i32 row = to.m + i32(warp * 16 + lane() / 4) + half * 8,
                  column = n + j * 8 + i32(lane() % 4) * 2;
        if (row < y.size[0])
          store_pair<kOut, !kDirect>(y, row, column, sums[j * 4 + half * 2], sums[j * 4 + half * 2 + 1]);
      }
  }
  template <i32 kThese>
  static void store_part(const float* sums, const Target& to, i32 n) {
    store_sums<kOut, kTurned>(
        reinterpret_cast<const float(&)[kThese / 2]>(*sums), to.stage, to.map,
        kTurned ? corner<kTypes.y.rank>(to.m, n, to.batch) : corner<kTypes.y.rank>(n, to.m, to.batch),
        to.barrier);
  }
  // Stores the columns of a group from kFirst on.
  template <i32 kFirst>
  static void store_anywhere(const float (&sums)[kOwn / 2], const Target& to, i32 n) {
    constexpr i32 kThese = kOwn - kFirst < kPart ? kOwn - kFirst : kPart;
    store_sums_anywhere<kOut>(reinterpret_cast<const float(&)[kThese / 2]>(sums[kFirst / 2]), to.stage,
                              to.args->result(to.batch), to.m, n + kFirst);
    if constexpr (kFirst + kThese < kOwn) store_anywhere<kFirst + kThese>(sums, to, n);
  }
};

}  // namespace heddle::device::matmul
