// mma_sympow as a whole kernel on sm_90a, for power 2: phi' is the left operand of wgmma, made in registers. A lane's pairs run over
// time: the loads of matrices turn x, so that a pair of x1[j] is the lane's own, and that of x0[i] comes from another lane of the warp.
// The square root of 2 multiplies FP32 sums. A group of four warps has kOwn blocks of 64 columns of phi; CTAs of a cluster have
// different blocks of one chunk, and share x and v. Chunks are multiples of 64 positions, or one alone: what a bulk copy reads beyond
// the last position is zero.
namespace mma_sympow {

struct KernelConfig {
  static constexpr i32 kTiles = 8;     // tiles of 8 elements in a row of x
  static constexpr i32 kColumns = 64;  // columns of v; a multiple of 8
  static constexpr i32 kOwn = 3;       // blocks of a group
  static constexpr i32 kCluster = 2;   // CTAs that share x and v
  static constexpr i32 kStages = 8;    // stages of 64 positions in flight
};

template <class Config>
struct Kernel {
  static constexpr MmaSympow kTypes = Config::types();
  static constexpr DType kType = kTypes.x.dtype, kOut = kTypes.s.dtype;
  static constexpr arch::Terms kTerms = kType == DType::kBf16 ? arch::Terms::kBf16 : arch::Terms::kF16;
  static constexpr i32 kTiles = Config::kTiles, kColumns = Config::kColumns, kOwn = Config::kOwn;
  static constexpr i32 kCluster = Config::kCluster, kGroups = 2, kBlocks = kTiles * (kTiles + 1) / 2;
  static constexpr i32 kParts = (kBlocks + kGroups * kOwn * kCluster - 1) / (kGroups * kOwn * kCluster);
  static constexpr i32 kWide = (kColumns + 63) / 64, kWideRows = (kTiles + 7) / 8;  // boxes of v, of x
  static constexpr u32 kBox = 64 * 128;
  using Ring = SlotRing<Config::kStages, (kWideRows + kWide) * kBox>;
  static constexpr u32 kThreads = 128 * (kGroups + 1);

  using Bringer = Role<128, 40>;
  using Multiplier = Role<128 * kGroups, 232>;
  using All = Roles<Bringer, Multiplier>;

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
  static i32 items(const MmaSympow& a) { return a.x.size[0] * a.x.size[2] * a.tiles().chunks() * kParts; }

  static void run(const MmaSympow& a, const TensorMap* maps, u8*) {
    const Ring ring{chip(), chip() + Ring::kBytes};
    if (threadIdx.x == 0) ring.init(kGroups * kCluster);
    if constexpr (kCluster > 1)
      arch::sync_cluster();
    else
      __syncthreads();
    const u32 rank = kCluster > 1 ? arch::cta_in_cluster() : 0;
    if (threadIdx.x < 128) {
      All::template enter<Bringer>();
      if (threadIdx.x == 0) bring(ring, a, maps, rank);
    } else {
      All::template enter<Multiplier>();
      multiply(ring, a, rank);
    }
    if constexpr (kCluster > 1) arch::sync_cluster();  // nobody leaves while others may arrive here
  }

  // Each CTA of a cluster brings its positions to all.
  static void bring(const Ring& ring, const MmaSympow& a, const TensorMap* maps, u32 rank) {
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
      if (member < u32(kCluster)) {
        if constexpr (kCluster > 1)
          ring.release_at(done, member);
        else
          ring.release(done);
      }
      done.next();
    };
    const EveryTile<kCluster> mine;
    const i32 all = items(a);
#pragma unroll 1
    for (i32 item = mine.first; item < all; item += mine.stride) {
      const Place at(a, item);
      const i32 first = ((at.part * kCluster + i32(rank)) * kGroups + i32(group)) * kOwn,
                steps = 4 * at.steps;
      u32 word[kOwn];  // the tile that the lane's row belongs to: lanes below 16 load x1, the others x0
      float scale[kOwn];
#pragma unroll
      for (i32 n = 0; n < kOwn; ++n) {
        i32 s0 = 0, s1 = min(first + n, kBlocks - 1);  // blocks beyond the last are made and not stored
        while (s1 > s0) s1 -= ++s0;
        word[n] = u32(lane() < 16 ? s1 : s0), scale[n] = s0 == s1 ? 1.0f : 1.41421356f;
      }
      float sums[kOwn][kColumns / 2];
      u32 left[2][kOwn][4];
      const auto make = [&](u32(&to)[kOwn][4], i32 step) {
        if (step % 4 == 0) ring.wait(made);
        const u32 t = u32(step % 4) * 16 + lane() % 16;
        const arch::OnChip row = ring.slot(made) + t * 128;
#pragma unroll
        for (i32 n = 0; n < kOwn; ++n) {
          const u32 wide = kWideRows > 1 ? word[n] / 8 * kBox : 0;
          u32 got[4];  // x1[j] and x0[i] of 8 positions, and of the next 8
          arch::load_transposed(got, row + (wide + ((word[n] % 8 ^ t % 8) * 16)));
          to[n][0] = arch::multiply_pairs<kType>(__shfl_sync(~0u, got[2], from0), got[0]);
          to[n][1] = arch::multiply_pairs<kType>(__shfl_sync(~0u, got[2], from1), got[0]);
          to[n][2] = arch::multiply_pairs<kType>(__shfl_sync(~0u, got[3], from0), got[1]);
          to[n][3] = arch::multiply_pairs<kType>(__shfl_sync(~0u, got[3], from1), got[1]);
        }
        if (step % 4 == 3) made.next();
      };
      const auto multiply_step = [&](u32(&now)[kOwn][4], i32 step) {
#pragma unroll
        for (i32 n = 0; n < kOwn; ++n) arch::keep(now[n]), arch::keep(sums[n]);
        arch::begin_products();
        const u64 v =
            arch::descriptor(ring.slot(place) + kWideRows * kBox, kBox) + u64(step % 4) * (2048 / 16);
#pragma unroll
        for (i32 n = 0; n < kOwn; ++n)
          arch::multiply<kTerms, arch::Major::kOuter>(sums[n], now[n], v, step > 0);
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
        if (first + n < kBlocks)
          store(sums[n], scale[n], a, at,
                (at.chunk * kBlocks + first + n) * 64 + i32(warp * 16 + lane() / 4));
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
      for (i32 j = 0; j < kColumns / 8; ++j) {
        const float x = sums[4 * j + 2 * half] * scale, y = sums[4 * j + 2 * half + 1] * scale;
        const i32 pair = 4 * j + i32(lane() % 4);
        if constexpr (kOut == DType::kF32)
          reinterpret_cast<float2*>(to)[pair] = {x, y};
        else
          reinterpret_cast<u32*>(to)[pair] = pack_pair<kOut>(x, y);
      }
    }
  }
};

}  // namespace mma_sympow
