// matmul as a whole kernel on sm_90a. One thread brings slabs of 64 k of both matrices by bulk copies, and one or two groups of
// four warps multiply them, 64 rows each. A cluster of CTAs along M shares the slabs of b. CTAs go from tile to tile; sums leave by
// bulk stores while the next tile is multiplied. Bulk copies fill what lies outside of a matrix with zeros and clip what is stored.
// A sum has its terms in the order of k whatever the constants.
namespace matmul {

struct KernelConfig {
  static constexpr i32 kKernel = 1;
  static constexpr i32 kRows = 128, kColumns = 256;  // a CTA's tile has them
  static constexpr i32 kBrought =
      kRows;  // rows of a that are brought; the other rows of a tile are not stored
  static constexpr i32 kSlabs = 1, kStages = 4;  // slabs of 64 k in a stage; stages in flight
  static constexpr i32 kCluster = 2;             // CTAs along M that share b
};

// The tile numbered `t`: groups of kGroup rows of tiles, so that what a wave reads stays in the L2 cache; in a group, columns one
// after the other, and of each all rows.
struct TilePlace {
  static constexpr i32 kGroup = 8;
  i32 m, n;

  TilePlace(i32 t, i32 rows, i32 columns) {
    const i32 group = t / (kGroup * columns), first = group * kGroup, height = min(kGroup, rows - first);
    const i32 in = t - group * kGroup * columns;
    m = first + in % height, n = in / height;
  }
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
  // A group stores so many columns at once.
  static constexpr i32 kPart = kColumns % 128 == 0 ? 128 : kColumns % 64 == 0 ? 64 : kColumns;
  // Narrow tiles have no whole boxes of 128 bytes; their threads store to memory.
  static constexpr bool kStoresBoxes = kColumns * size_of(kOut) % 128 == 0;
  static constexpr u32 kStage = kStoresBoxes ? stored_bytes(kOut, kPart) : 0;
  static_assert(kBrought % 8 == 0 && kBrought <= kRows && (kBrought == kRows || kRows == 64));
  static_assert(kRows % 64 == 0 && kGroups <= 2 && kSlab % 1024 == 0);
  static_assert(kRowsB ? kColumns % (8 * kCluster) == 0 : kColumns % (64 * kCluster) == 0);

  using Bringer = Role<128, kGroups == 2 ? 40 : 24>;
  using Multiplier = Role<128 * kGroups, kGroups == 2 ? 232 : 240>;
  using All = Roles<Bringer, Multiplier>;

  struct Sizes {
    i32 rows, columns, steps, first, stride;  // tiles; k in stages; this cluster's tiles
    u32 rank;

    explicit Sizes(const Matmul& a) {
      rank = kCluster > 1 ? arch::cta_in_cluster() : 0;
      rows = (a.y.size[0] + kRows * kCluster - 1) / (kRows * kCluster);
      columns = (a.y.size[1] + kColumns - 1) / kColumns;
      const i32 k = a.a.cols();
      steps = (k + kSlabK * kSlabs - 1) / (kSlabK * kSlabs);
      first = i32(blockIdx.x) / kCluster, stride = i32(gridDim.x) / kCluster;
    }
  };

  static void run(const Matmul& a, const TensorMap* maps, u8*) {
    const Ring ring{chip(), chip() + (Ring::kBytes + kGroups * kStage)};
    if (threadIdx.x == 0) ring.init(kGroups * kCluster);
    if constexpr (kCluster > 1)
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
    if constexpr (kCluster > 1) arch::sync_cluster();  // nobody leaves while others may arrive here
  }

  static void bring(const Ring& ring, const Sizes& sizes, const TensorMap* maps) {
    typename Ring::Place place;
#pragma unroll 1
    for (i32 t = sizes.first; t < sizes.rows * sizes.columns; t += sizes.stride) {
      const TilePlace tile(t, sizes.rows, sizes.columns);
      const i32 m = (tile.m * kCluster + i32(sizes.rank)) * kRows, n = tile.n * kColumns;
#pragma unroll 1
      for (i32 step = 0; step < sizes.steps; ++step, place.next()) {
        ring.begin(place, kSlabs * (kBrought * 128 + kSlabB));
#pragma unroll
        for (i32 s = 0; s < kSlabs; ++s) {
          const arch::OnChip to = ring.slot(place) + s * kSlab;
          const i32 k = (step * kSlabs + s) * kSlabK;
          bring_a(to, ring.full(place), maps, m, k);
          bring_b(to + kSlabA, ring.full(place), maps + 1, n, k, sizes.rank);
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
    const arch::OnChip stage = chip() + (Ring::kBytes + group * kStage);
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
    for (i32 t = sizes.first; t < sizes.rows * sizes.columns; t += sizes.stride) {
      const TilePlace tile(t, sizes.rows, sizes.columns);
      const i32 m = (tile.m * kCluster + i32(sizes.rank)) * kRows + i32(group) * 64, n = tile.n * kColumns;
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
      if constexpr (kStoresBoxes)
        store(sums, stage, maps + 2, n, m, group);
      else
        store(sums, a.y, n, m);
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
  static void store(const float (&sums)[kColumns / 2], arch::OnChip stage, const TensorMap* map, i32 n, i32 m,
                    u32 group) {
#pragma unroll
    for (i32 part = 0; part < kColumns / kPart; ++part)
      store_sums<kOut>(reinterpret_cast<const float(&)[kPart / 2]>(sums[part * (kPart / 2)]), stage, map,
                       n + part * kPart, m, 1 + group);
  }
  static void store(const float (&sums)[kColumns / 2], const Tensor& y, i32 n, i32 m) {
    const u32 warp = threadIdx.x / 32 % 4;
#pragma unroll
    for (i32 j = 0; j < kColumns / 8; ++j)
#pragma unroll
      for (i32 half = 0; half < 2; ++half) {
        const i32 row = m + i32(warp * 16 + lane() / 4) + half * 8, column = n + j * 8 + i32(lane() % 4) * 2;
        if (row < y.size[0])
          store_pair<kOut>(y, row, column, sums[j * 4 + half * 2], sums[j * 4 + half * 2 + 1]);
      }
  }
};

}  // namespace matmul
