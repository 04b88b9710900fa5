// matmul as a whole kernel on sm_90a. One thread brings slabs of 64 k of both matrices by bulk copies, and one or two groups of
// four warps multiply them, 64 rows each. A cluster is two CTAs along M that share the slabs of b, or two that have half of k each.
// CTAs go from tile to tile; sums leave by bulk stores while the next tile is multiplied. Bulk copies fill what lies outside of a
// matrix with zeros and clip what is stored. A sum has its terms in the order of k, with kSplit 2 each half of them, whatever the
// other constants.
namespace matmul {

struct KernelConfig {
  static constexpr i32 kKernel = 1;
  static constexpr i32 kRows = 128, kColumns = 256;  // a CTA's tile has them
  static constexpr i32 kBrought = kRows;         // rows of a that are brought; a tile's others are not stored
  static constexpr i32 kSlabs = 1, kStages = 4;  // slabs of 64 k in a stage; stages in flight
  static constexpr i32 kCluster = 1;             // CTAs along M that share b
  static constexpr i32 kSplit = 1;               // parts of k
};

template <class Config>
struct Kernel {
  static constexpr Matmul kTypes = Config::types();
  static constexpr DType kIn = kTypes.a.data.dtype, kOut = kTypes.y.dtype;
  static constexpr arch::Terms kTerms = kIn == DType::kBf16 ? arch::Terms::kBf16 : arch::Terms::kF16;
  static constexpr bool kRowsA = !kTypes.a.transposed, kRowsB = kTypes.b.transposed;  // k is adjacent
  static constexpr arch::Major kMajorA = kRowsA ? arch::Major::kK : arch::Major::kOuter;
  static constexpr arch::Major kMajorB = kRowsB ? arch::Major::kK : arch::Major::kOuter;

  static constexpr i32 kRows = Config::kRows, kColumns = Config::kColumns, kCluster = Config::kCluster;
  static constexpr i32 kBrought = kRowsA ? Config::kBrought : kRows;
  static constexpr i32 kSlabs = Config::kSlabs, kStages = Config::kStages, kSlabK = 64;
  static constexpr u32 kGroups = kRows / 64, kThreads = 128 * (kGroups + 1);
  static constexpr u32 kSlabA = kRows * 128, kSlabB = kColumns * 128, kSlab = kSlabA + kSlabB;
  static constexpr u32 kLead = 64 * 128;  // bytes of 64 rows or columns of a slab that lies along M or N
  using Ring = SlotRing<kStages, kSlabs * kSlab>;
  static constexpr i32 kSplit = Config::kSplit, kInCluster = kCluster * kSplit;
  // A CTA stores kOwn columns of a tile: groups store kPart of them at once as boxes, and their threads store the rest.
  static constexpr i32 kOwn = kColumns / kSplit;
  static constexpr i32 kPart = kOwn < 64 ? 0 : kOwn % 128 == 0 && kSplit == 1 ? 128 : 64;
  static constexpr i32 kBoxed = kPart == 0 ? 0 : kOwn / kPart * kPart;
  static constexpr u32 kStage = stored_bytes(kOut, kPart);
  using Halves = Exchange<kSplit == 1 ? 8 : kColumns / 2>;
  static constexpr u32 kHalves = kSplit > 1 ? Halves::kBytes : 0;
  static constexpr u32 kAfterRing = Ring::kBytes, kAfterStages = kAfterRing + kGroups * kStage,
                       kAfterHalves = kAfterStages + kGroups * kHalves,
                       kAfterBarriers = kAfterHalves + Ring::kBarrierBytes;
  static_assert(kCluster == 1 || kSplit == 1);
  static_assert(kBrought % 8 == 0 && kBrought <= kRows && (kBrought == kRows || kRows == 64));
  static_assert(kRows % 64 == 0 && kGroups <= 2 && kSlab % 1024 == 0);
  static_assert(kRowsB ? kColumns % (8 * kCluster) == 0 : kColumns % (64 * kCluster) == 0);

  static constexpr i32 kPartSlabs = 4;  // parts of k are multiples of so many slabs
  static_assert(kPartSlabs % kSlabs == 0);
  using TilePlace = GroupedPlace<8>;
  using Bringer = Role<128, kGroups == 2 ? 40 : 24>;
  using Multiplier = Role<128 * kGroups, kGroups == 2 ? 232 : 240>;
  using All = Roles<Bringer, Multiplier>;

  struct Sizes {
    i32 rows, columns, steps;  // tiles; k in stages
    i32 first = 0;             // the slab that this CTA begins with
    EveryTile<kInCluster> mine;
    u32 rank;

    explicit Sizes(const Matmul& a) {
      rank = kInCluster > 1 ? arch::cta_in_cluster() : 0;
      rows = (a.y.size[0] + kRows * kCluster - 1) / (kRows * kCluster);
      columns = (a.y.size[1] + kColumns - 1) / kColumns;
      i32 slabs = (a.a.cols() + kSlabK - 1) / kSlabK;
      if constexpr (kSplit > 1) {
        const i32 part = (slabs + kSplit * kPartSlabs - 1) / (kSplit * kPartSlabs) * kPartSlabs;
        first = i32(rank) * part;
        slabs = min(part, slabs - first);
      }
      steps = (slabs + kSlabs - 1) / kSlabs;
    }
    // The row of a tile that this CTA begins with.
    i32 row_of(const TilePlace& tile) const {
      return (tile.m * kCluster + i32(kSplit > 1 ? 0 : rank)) * kRows;
    }
  };

  static void run(const Matmul& a, const TensorMap* maps, u8*) {
    const Ring ring{chip(), chip() + kAfterHalves};
    if (threadIdx.x == 0) {
      for (i32 m = 0; m < 3; ++m) arch::prefetch_map(maps + m);
      if constexpr (kSplit > 1)
        for (u32 g = 0; g < kGroups; ++g) Halves::init(chip() + (kAfterBarriers + g * Halves::kBarrierBytes));
      ring.init(kGroups * kCluster);
    }
    if constexpr (kInCluster > 1)
      arch::sync_cluster();
    else
      __syncthreads();
    const Sizes sizes(a);
    if (threadIdx.x < 128) {
      All::template enter<Bringer>();
      if (threadIdx.x == 0) bring(ring, sizes, maps);
    } else {
      All::template enter<Multiplier>();
      multiply(ring, sizes, a, maps);
    }
    if constexpr (kInCluster > 1) arch::sync_cluster();  // nobody leaves while others may arrive here
  }

  static void bring(const Ring& ring, const Sizes& sizes, const TensorMap* maps) {
    typename Ring::Place place;
#pragma unroll 1
    for (i32 t = sizes.mine.first; t < sizes.rows * sizes.columns; t += sizes.mine.stride) {
      const TilePlace tile(t, sizes.rows, sizes.columns);
      const i32 m = sizes.row_of(tile), n = tile.n * kColumns;
#pragma unroll 1
      for (i32 step = 0; step < sizes.steps; ++step, place.next()) {
        ring.begin(place, kSlabs * (kBrought * 128 + kSlabB));
#pragma unroll
        for (i32 s = 0; s < kSlabs; ++s) {
          const arch::OnChip to = ring.slot(place) + s * kSlab;
          const i32 k = (sizes.first + step * kSlabs + s) * kSlabK;
          bring_a(to, ring.full(place), maps, m, k);
          bring_b(to + kSlabA, ring.full(place), maps + 1, n, k, kCluster > 1 ? sizes.rank : 0);
        }
      }
    }
  }
  static void bring_a(arch::OnChip to, arch::OnChip full, const TensorMap* map, i32 m, i32 k) {
    if constexpr (kRowsA) {
      arch::load_box(to, map, full, arch::Corner2{k, m});
    } else {
#pragma unroll
      for (i32 j = 0; j < kRows / 64; ++j)
        arch::load_box(to + j * kLead, map, full, arch::Corner2{m + j * 64, k});
    }
  }
  // Each CTA of a cluster brings its part to all.
  static void bring_b(arch::OnChip to, arch::OnChip full, const TensorMap* map, i32 n, i32 k, u32 rank) {
    constexpr u16 kAll = (1 << kCluster) - 1;
    const auto load = [&](u32 at, i32 x, i32 y) {
      if constexpr (kCluster > 1)
        arch::load_box_to(kAll, to + at, map, full, arch::Corner2{x, y});
      else
        arch::load_box(to + at, map, full, arch::Corner2{x, y});
    };
    constexpr i32 kMine = kColumns / kCluster;
    if constexpr (kRowsB) {
      load(rank * kMine * 128, k, n + i32(rank) * kMine);
    } else {
#pragma unroll
      for (i32 j = 0; j < kMine / 64; ++j) {
        const i32 block = i32(rank) * (kMine / 64) + j;
        load(block * kLead, n + block * 64, k);
      }
    }
  }

  static void multiply(const Ring& ring, const Sizes& sizes, const Matmul& a, const TensorMap* maps) {
    const u32 group = threadIdx.x / 128 - 1, member = threadIdx.x % 128;
    const arch::OnChip stage = chip() + (kAfterRing + group * kStage);
    Halves halves(chip() + (kAfterStages + group * kHalves),
                  chip() + (kAfterBarriers + group * Halves::kBarrierBytes));
    typename Ring::Place place, done;
    const auto release = [&] {
      if (member < u32(kCluster)) {
        if constexpr (kCluster > 1)
          ring.release_at(done, member);
        else
          ring.release(done);
      }
      done.next();
    };
#pragma unroll 1
    for (i32 t = sizes.mine.first; t < sizes.rows * sizes.columns; t += sizes.mine.stride) {
      const TilePlace tile(t, sizes.rows, sizes.columns);
      const i32 m = sizes.row_of(tile) + i32(group) * 64, n = tile.n * kColumns;
      float sums[kColumns / 2];
      arch::keep(sums);
#pragma unroll 1
      for (i32 step = 0; step < sizes.steps; ++step, place.next()) {
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
      arch::keep(sums);
      release();
      const Target target{stage, maps + 2, &a.y, 1 + group, m};
      if (kSplit == 1 || sizes.rank == 0)
        finish<0>(sums, halves, target, n);
      else
        finish<kSplit - 1>(sums, halves, target, n);
    }
    if (member == 0) arch::wait_stores_read<0>();
  }
  static void multiply_slab(float (&sums)[kColumns / 2], arch::OnChip slab, u32 group, bool add) {
    const u64 a = arch::descriptor(slab + group * kLead, kRowsA ? 16 : kLead);
    const u64 b = arch::descriptor(slab + kSlabA, kRowsB ? 16 : kLead);
    constexpr u64 kStepA = (kRowsA ? 32 : 2048) / 16, kStepB = (kRowsB ? 32 : 2048) / 16;  // 16 k
#pragma unroll
    for (i32 i = 0; i < kSlabK / 16; ++i)
      arch::multiply<kTerms, kMajorA, kMajorB>(sums, a + i * kStepA, b + i * kStepB, add || i > 0);
  }

  // Where a group stores: through its stage, or straight to memory.
  struct Target {
    arch::OnChip stage;
    const TensorMap* map;
    const Tensor* y;
    u32 barrier;
    i32 m;
  };
  template <i32 kRank>
  static void finish(float (&sums)[kColumns / 2], Halves& halves, const Target& to, i32 n) {
    if constexpr (kSplit > 1) halves.template add<kRank>(sums, to.barrier);
    store(reinterpret_cast<const float(&)[kOwn / 2]>(sums[kRank * kOwn / 2]), to, n + kRank * kOwn);
  }
  static void store(const float (&sums)[kOwn / 2], const Target& to, i32 n) {
    if constexpr (kBoxed > 0) {
#pragma unroll
      for (i32 part = 0; part < kBoxed / kPart; ++part)
        store_sums<kOut>(reinterpret_cast<const float(&)[kPart / 2]>(sums[part * (kPart / 2)]), to.stage,
                         to.map, n + part * kPart, to.m, to.barrier);
    }
    const u32 warp = threadIdx.x / 32 % 4;
#pragma unroll
    for (i32 j = kBoxed / 8; j < kOwn / 8; ++j)
#pragma unroll
      for (i32 half = 0; half < 2; ++half) {
        const i32 row = to.m + i32(warp * 16 + lane() / 4) + half * 8,
                  column = n + j * 8 + i32(lane() % 4) * 2;
        if (row < to.y->size[0])
          store_pair<kOut>(*to.y, row, column, sums[j * 4 + half * 2], sums[j * 4 + half * 2 + 1]);
      }
  }
};

}  // namespace matmul
