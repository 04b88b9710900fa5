// flash_attention_backward as whole kernels on sm_90a. `Prepare` brings lse and delta into the form that copies can take. In
// `Kernel` a CTA has 128 keys, each of two groups of four warps 64 of them, with dk and dv in registers; queries come 64 at a time:
//   s = k q^T, p = exp(s - lse), dp = v dy^T, dv += p dy, ds = p (dp - delta), dk += ds q, dq += ds^T k
// Each group makes half of the columns of dq, which two threads add to memory by bulk copies, one CTA after the other: the last
// keys first. A CTA waits only for CTAs that were launched before it, so the kernel ends however few of them run at once.
// `Finish` puts dq in rows.
namespace flash_attention_backward {

#include "heddle/ops/flash_attention/attention_parts.cuh"

struct KernelConfig {
  static constexpr i32 kKernel = 1;
  static constexpr i32 kDim = 128;    // elements of a head, rounded up to 64 or 128
  static constexpr i32 kSoftcap = 0;  // 1: the call has one
};

constexpr float kLog2E = 1.4426950409f;

inline float scale_of(const FlashAttentionBackward& a) {
  return a.scale != 0 ? a.scale : arch::rsqrt(float(a.q.size[3]));
}
inline float infinity() {
  return __int_as_float(0x7f800000);
}

// A tile of one side: a sequence, and the rows of that side that it has.
struct SideTile {
  AttentionSequence sequence;
  i32 row;         // the first, in the sequence
  i32 first_step;  // the number of the sequence's first step of queries
};

template <bool kHasParts>
inline SideTile query_tile(const FlashAttentionBackward& a, i32 step) {
  if constexpr (!kHasParts) return {{0, a.q.size[1], 0, a.k.size[1]}, step * kStepQueries, 0};
  const Parts parts = Parts::of(a.cu_seqlens_q, a.cu_seqlens_k, a.q.size[1], a.k.size[1]);
  const i32 n = parts.part_of(step, kStepQueries), first = parts.first_tile(n, kStepQueries);
  const AttentionRange rows = parts.range(n), keys = parts.other_range(n);
  return {{rows.begin, rows.end, keys.begin, keys.end}, (step - first) * kStepQueries, first};
}
template <bool kHasParts>
inline SideTile key_tile(const FlashAttentionBackward& a, i32 tile) {
  if constexpr (!kHasParts) return {{0, a.q.size[1], 0, a.k.size[1]}, tile * kBlockKeys, 0};
  const Parts parts = Parts::of(a.cu_seqlens_k, a.cu_seqlens_q, a.k.size[1], a.q.size[1]);
  const i32 n = parts.part_of(tile, kBlockKeys);
  const AttentionRange keys = parts.range(n), rows = parts.other_range(n);
  const Parts queries = Parts::of(a.cu_seqlens_q, a.cu_seqlens_k, a.q.size[1], a.k.size[1]);
  return {{rows.begin, rows.end, keys.begin, keys.end},
          (tile - parts.first_tile(n, kBlockKeys)) * kBlockKeys,
          queries.first_tile(n, kStepQueries)};
}

// The last block of keys that any of a step's queries sees; -1: none.
inline i32 last_block(const AttentionMask& mask, i32 row) {
  const i32 begin = mask.keys_of(row).begin,
            end = mask.keys_of(min(row + kStepQueries, mask.queries) - 1).end;
  return row < mask.queries && begin < end ? (end - 1) / kBlockKeys : -1;
}

template <class Config>
struct Facts {
  static constexpr FlashAttentionBackward kTypes = Config::types();
  static constexpr DType kType = kTypes.q.dtype;
  static constexpr bool kHasParts = kTypes.cu_seqlens_q.rank > 0;
  static constexpr bool kHasBias = kTypes.bias.rank > 0, kHasAlibi = kTypes.alibi_slopes.rank > 0;
  static constexpr bool kBends = Config::kSoftcap || kHasBias || kHasAlibi;
  static constexpr i32 kDim = Config::kDim, kHalf = kDim / 2;
};

// A thread for each query, those that fill up the last steps included.
template <class Config>
struct Prepare : Facts<Config> {
  using Facts<Config>::kHasParts;
  static constexpr u32 kThreads = 256;

  static void run(const FlashAttentionBackward& a, const TensorMap*, u8* workspace) {
    const AttentionRoom room(a, Config::kDim);
    const i64 all = i64(a.q.size[0]) * a.q.size[2] * room.steps * kStepQueries;
    const i64 at = i64(blockIdx.x) * kThreads + threadIdx.x;
    if (at >= all) return;
    const i32 query = i32(at % kStepQueries), step = i32(at / kStepQueries % room.steps);
    const i32 head = i32(at / kStepQueries / room.steps);
    const SideTile tile = query_tile<kHasParts>(a, step);
    const i32 row = tile.row + query;
    float lse = infinity(), delta = 0;
    if (row < tile.sequence.queries()) {
      const i32 b = head / a.q.size[2], h = head % a.q.size[2], in = tile.sequence.query_begin + row;
      lse =
          reinterpret_cast<const float*>(a.lse.data)[b * a.lse.stride[0] + h * a.lse.stride[1] + in] * kLog2E;
      delta =
          reinterpret_cast<const float*>(a.delta.data)[b * a.delta.stride[0] + h * a.delta.stride[1] + in];
      if (lse == -infinity()) lse = infinity();
    }
    reinterpret_cast<float*>(workspace + room.lse)[at] = lse;
    reinterpret_cast<float*>(workspace + room.delta)[at] = delta;
  }
};

template <class Config>
struct Kernel : Facts<Config> {
  using F = Facts<Config>;
  using F::kType, F::kHasParts, F::kHasBias, F::kHasAlibi, F::kBends, F::kDim, F::kHalf;
  static constexpr arch::Terms kTerms = kType == DType::kBf16 ? arch::Terms::kBf16 : arch::Terms::kF16;
  static constexpr arch::Major kAlongK = arch::Major::kK, kAlongN = arch::Major::kOuter;
  static constexpr i32 kKeys = kBlockKeys, kQueries = kStepQueries, kStages = 2;
  static constexpr u32 kThreads = 384, kSlabs = kDim / 64;
  static constexpr u32 kKeyBytes = kSlabs * kKeys * 128, kQueryBytes = kSlabs * kQueries * 128;
  static constexpr u32 kScoreBytes = kKeys * kQueries * 2, kHalfBytes = kQueries * kHalf * 4,
                       kRowBytes = kQueries * 4;
  using Ring = SlotRing<kStages, kQueryBytes>;
  static_assert(kDim == 64 || kDim == 128);

  using Helper = Role<128, 24>;
  using Multiplier = Role<256, 240>;
  using All = Roles<Helper, Multiplier>;

  struct Chip {
    arch::OnChip keys = chip(), values = keys + kKeyBytes, queries = values + kKeyBytes,
                 given = queries + Ring::kBytes, scores = given + Ring::kBytes,
                 halves = scores + 2 * kScoreBytes, rows = halves + 2 * kHalfBytes,
                 query_barriers = rows + 2 * kStages * kRowBytes,
                 given_barriers = query_barriers + Ring::kBarrierBytes,
                 full = given_barriers + Ring::kBarrierBytes, half_full = full + 8, half_empty = full + 24;
    Ring query_ring{queries, query_barriers}, given_ring{given, given_barriers};

    static constexpr u32 kBytes = 2 * kKeyBytes + 2 * Ring::kBytes + 2 * kScoreBytes + 2 * kHalfBytes +
                                  2 * kStages * kRowBytes + 2 * Ring::kBarrierBytes + 40;
    arch::OnChip lse(u32 slot) const { return rows + slot * kRowBytes; }
    arch::OnChip delta(u32 slot) const { return rows + (kStages + slot) * kRowBytes; }
  };

  // The keys of a CTA and the steps of queries that see any of them.
  struct Work {
    i32 batch, group, heads;  // heads that share the keys
    SideTile tile;
    AttentionMask mask;
    i32 first, last;  // steps

    explicit Work(const FlashAttentionBackward& a) {
      const i32 tiles = attention_tiles(a.k.size[1], kKeys, a.cu_seqlens_k), at = i32(blockIdx.x);
      const i32 line = at / tiles;
      batch = line / a.k.size[2], group = line % a.k.size[2], heads = a.q.size[2] / a.k.size[2];
      tile = key_tile<kHasParts>(a, tiles - 1 - at % tiles);
      mask = attention_mask(a, tile.sequence);
      const i32 end = min(tile.row + kKeys, mask.keys);
      first = last = 0;
      if (tile.row >= end) return;
      const i32 from = mask.queries_of(tile.row).begin, to = mask.queries_of(end - 1).end;
      if (from < to) first = from / kQueries, last = (to + kQueries - 1) / kQueries;
    }
    i32 block() const { return tile.row / kKeys; }
    i32 head(i32 n) const { return group * heads + n; }
    // f(head, step in the sequence)
    template <class F>
    void each_step(F&& f) const {
#pragma unroll 1
      for (i32 n = 0; n < heads; ++n)
#pragma unroll 1
        for (i32 step = first; step < last; ++step) f(head(n), step);
    }
  };

  static void run(const FlashAttentionBackward& a, const TensorMap* maps, u8* workspace) {
    const Chip chip;
    if (threadIdx.x == 0) {
      chip.query_ring.init(2), chip.given_ring.init(2);
      arch::init_barrier(chip.full, 1u);
#pragma unroll
      for (u32 w = 0; w < 2; ++w)
        arch::init_barrier(chip.half_full + 8 * w, 128u), arch::init_barrier(chip.half_empty + 8 * w, 1u);
      arch::fence_barriers();
    }
    __syncthreads();
    const Work work(a);
    if (threadIdx.x < 128) {
      All::template enter<Helper>();
      if (threadIdx.x == 0) bring(chip, work, a, maps, workspace);
      if (threadIdx.x == 32 || threadIdx.x == 64) drain(chip, work, a, workspace, threadIdx.x / 32 - 1);
      return;
    }
    All::template enter<Multiplier>();
    Group(chip, work, a).run();
  }

  // The number of a head's step among all, for the workspace.
  static i64 place_of(const FlashAttentionBackward& a, const Work& work, i32 steps, i32 head, i32 step) {
    return (i64(work.batch) * a.q.size[2] + head) * steps + work.tile.first_step + step;
  }

  static void load(arch::OnChip to, const TensorMap* map, arch::OnChip full, i32 rows, arch::Corner4 at) {
#pragma unroll
    for (u32 j = 0; j < kSlabs; ++j, at.x += 64) arch::load_box(to + j * u32(rows) * 128, map, full, at);
  }

  static void bring(const Chip& chip, const Work& work, const FlashAttentionBackward& a,
                    const TensorMap* maps, u8* workspace) {
    if (work.first >= work.last) return;
    const AttentionRoom room(a, kDim);
    const i32 key = work.tile.sequence.key_begin + work.tile.row;
    arch::expect_bytes(chip.full, 2 * kKeyBytes);
    load(chip.keys, maps + 1, chip.full, kKeys, {0, key, work.group, work.batch});
    load(chip.values, maps + 2, chip.full, kKeys, {0, key, work.group, work.batch});
    typename Ring::Place place;
    work.each_step([&](i32 head, i32 step) {
      const i32 row = work.tile.sequence.query_begin + step * kQueries;
      const i64 line = place_of(a, work, room.steps, head, step) * kRowBytes;
      chip.query_ring.begin(place, kQueryBytes + kRowBytes);
      load(chip.query_ring.slot(place), maps, chip.query_ring.full(place), kQueries,
           {0, row, head, work.batch});
      arch::load_bytes(chip.lse(place.slot), workspace + room.lse + line, kRowBytes,
                       chip.query_ring.full(place));
      chip.given_ring.begin(place, kQueryBytes + kRowBytes);
      load(chip.given_ring.slot(place), maps + 3, chip.given_ring.full(place), kQueries,
           {0, row, head, work.batch});
      arch::load_bytes(chip.delta(place.slot), workspace + room.delta + line, kRowBytes,
                       chip.given_ring.full(place));
      place.next();
    });
  }

  // Adds half w of each step's dq to memory, after the CTA that has the next keys.
  static void drain(const Chip& chip, const Work& work, const FlashAttentionBackward& a, u8* workspace,
                    u32 w) {
    const AttentionRoom room(a, kDim);
    u32 phase = 0;
    work.each_step([&](i32 head, i32 step) {
      const i64 place = place_of(a, work, room.steps, head, step) * 2 + w;
      const u32 before = u32(last_block(work.mask, step * kQueries) - work.block());
      arch::wait_barrier(chip.half_full + 8 * w, phase), phase ^= 1;
      u32* const turn = reinterpret_cast<u32*>(workspace) + place;
      float* const to = reinterpret_cast<float*>(workspace + room.dq) + place * (kHalfBytes / 4);
      if (before > 0) wait_for(turn, before);
      arch::show_memory_to_copies();
      if (before == 0)
        arch::store_bytes(to, chip.halves + w * kHalfBytes, kHalfBytes);
      else
        arch::add_floats(to, chip.halves + w * kHalfBytes, kHalfBytes);
      arch::commit_stores();
      arch::wait_stores_read<0>();
      arch::arrive(chip.half_empty + 8 * w);
      arch::wait_stores<0>();
      arch::show_memory_to_copies();
      asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(turn), "r"(before + 1) : "memory");
    });
  }
  // One block of assembly, as arch::wait_barrier.
  static void wait_for(const u32* turn, u32 before) {
    asm volatile(
        "{.reg .pred p; .reg .u32 seen; .reg .u64 begin, now;\n"
        "mov.u64 begin, %%clock64;\n"
        "again_%=:\nld.acquire.gpu.u32 seen, [%0];\nsetp.eq.u32 p, seen, %1;\n@p bra done_%=;\n"
        "mov.u64 now, %%clock64; sub.u64 now, now, begin; setp.gt.u64 p, now, %2;\n@!p bra again_%=;\ntrap;\n"
        "done_%=:\n}" ::"l"(turn),
        "r"(before), "n"(arch::kMostWaitTicks)
        : "memory");
  }

  // 64 keys, in four warps. Scores lie with keys as rows: a thread has parts of two of them.
  struct Group {
    const Chip& chip;
    const Work& work;
    const FlashAttentionBackward& a;
    const u32 w = threadIdx.x / 128 - 1, thread = threadIdx.x % 128;
    const u32 row = thread / 32 * 16 + lane() / 4, column = lane() % 4 * 2;
    const float scale;
    AttentionRange seen[2];  // queries that see the thread's keys
    i32 all_begin, all_end;  // queries that see all keys of the group
    float dk[kDim / 2], dv[kDim / 2], s[kQueries / 2], dp[kQueries / 2];
    u32 weights[kQueries / 16][4], ds[kQueries / 16][4];
    typename Ring::Place place;

    Group(const Chip& on_chip, const Work& its, const FlashAttentionBackward& args)
        : chip(on_chip), work(its), a(args), scale(scale_of(args)) {}

    bool speaks() const { return thread == 0; }
    i32 first_key() const { return work.tile.row + i32(w) * 64; }

    void run() {
      const AttentionMask& mask = work.mask;
#pragma unroll
      for (i32 r = 0; r < 2; ++r) {
        const i32 key = first_key() + i32(row) + 8 * r;
        seen[r] = key < mask.keys ? mask.queries_of(key) : AttentionRange{0, 0};
      }
      all_begin = mask.queries_of(first_key() + 63).begin;
      all_end = first_key() + 64 <= mask.keys ? mask.queries_of(first_key()).end : 0;
#pragma unroll
      for (i32 i = 0; i < kDim / 2; ++i) dk[i] = dv[i] = 0;
      if (work.first < work.last) arch::wait_barrier(chip.full, 0);
      u32 turn = 0;
      work.each_step([&](i32 head, i32 step) {
        take_step(head, step * kQueries, turn);
        turn ^= 1;
        place.next();
      });
      store(a.dk, dk, scale);
      store(a.dv, dv, 1);
    }

    // s = k q^T or dp = v dy^T
    static void multiply(float (&sums)[kQueries / 2], u64 left, u64 right) {
#pragma unroll
      for (i32 c = 0; c < kDim / 16; ++c)
        arch::multiply<kTerms, kAlongK, kAlongK>(sums, left + (c / 4 * kKeys * 128 + c % 4 * 32) / 16,
                                                 right + (c / 4 * kQueries * 128 + c % 4 * 32) / 16, c > 0);
      arch::commit_products();
    }
    // dv += p dy or dk += ds q
    static void add_products(float (&sums)[kDim / 2], const u32 (&left)[kQueries / 16][4],
                             arch::OnChip right) {
      const u64 b = arch::descriptor(right, kQueries * 128);
#pragma unroll
      for (i32 c = 0; c < kQueries / 16; ++c)
        arch::multiply<kTerms, kAlongN>(sums, left[c], b + c * 2048 / 16, true);
      arch::commit_products();
    }
    static void keep(u32 (&values)[kQueries / 16][4]) {
#pragma unroll
      for (i32 c = 0; c < kQueries / 16; ++c) arch::keep(values[c]);
    }

    // Queries from `first` on, in the sequence.
    void take_step(i32 head, i32 first, u32 turn) {
      const arch::OnChip queries = chip.query_ring.slot(place), given = chip.given_ring.slot(place);
      chip.query_ring.wait(place);
      arch::keep(s);
      arch::begin_products();
      multiply(s, arch::descriptor(chip.keys + w * 8192), arch::descriptor(queries));
      chip.given_ring.wait(place);
      arch::keep(dp);
      arch::begin_products();
      multiply(dp, arch::descriptor(chip.values + w * 8192), arch::descriptor(given));
      arch::wait_products<1>();
      arch::keep(s);
      to_weights(head, first);
      arch::keep(dv), keep(weights);
      arch::begin_products();
      add_products(dv, weights, given);
      arch::wait_products<1>();
      arch::keep(dp);
      to_gradients();
      share_gradients(turn);
      float dq[kHalf / 2];
      arch::keep(dq), arch::keep(dk), keep(ds);
      arch::begin_products();
      multiply_dq(dq, turn);
      add_products(dk, ds, queries);
      arch::wait_products<2>();
      arch::keep(dv), keep(weights);
      if (speaks()) chip.given_ring.release(place);
      arch::wait_products<1>();
      arch::keep(dq);
      hand_over(dq, turn);
      arch::wait_products<0>();
      arch::keep(dk), keep(ds);
      if (speaks()) chip.query_ring.release(place);
    }

    static float2 load_pair(arch::OnChip at) {
      float2 pair;
      asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(pair.x), "=f"(pair.y) : "r"(at.at) : "memory");
      return pair;
    }
    // s becomes p, and then p times the slope of the cap.
    void to_weights(i32 head, i32 first) {
      float slope[Config::kSoftcap ? kQueries / 2 : 1];
      if constexpr (kBends) bend(head, first, slope);
      const float exponent = kBends ? kLog2E : scale * kLog2E;
#pragma unroll
      for (i32 j = 0; j < kQueries / 8; ++j) {
        const float2 lse = load_pair(chip.lse(place.slot) + (8 * j + column) * 4);
#pragma unroll
        for (i32 c = 0; c < 4; ++c)
          s[4 * j + c] = arch::exp2(__fmaf_rn(s[4 * j + c], exponent, -(c % 2 == 0 ? lse.x : lse.y)));
      }
      if (first < all_begin || first + kQueries > all_end) mask(first);
#pragma unroll
      for (i32 j = 0; j < kQueries / 4; ++j) weights[j / 4][j % 4] = pack_pair<kType>(s[2 * j], s[2 * j + 1]);
      if constexpr (Config::kSoftcap) {
#pragma unroll
        for (i32 j = 0; j < kQueries / 2; ++j) s[j] *= slope[j];
      }
    }
    // The query of score j in a step from `first` on.
    i32 query_of(i32 first, i32 j) const { return first + j / 4 * 8 + i32(column) + j % 2; }
    void mask(i32 first) {
#pragma unroll
      for (i32 j = 0; j < kQueries / 2; ++j) {
        const AttentionRange& range = seen[j / 2 % 2];
        const i32 query = query_of(first, j);
        if (query < range.begin || query >= range.end) s[j] = 0;
      }
    }
    template <i32 kCount>
    void bend(i32 head, i32 first, float (&slope)[kCount]) {
      const float cap = a.softcap, inward = Config::kSoftcap ? 2 * kLog2E * scale / cap : 0;
      float steep = 0, apart = 0;
      if constexpr (kHasAlibi) {
        steep = reinterpret_cast<const float*>(a.alibi_slopes.data)[head];
        apart = float(work.mask.position(0) - first_key() - i32(row));
      }
      const u8* bias = nullptr;
      if constexpr (kHasBias)
        bias = a.bias.data + ((a.bias.size[0] == 1 ? 0 : work.batch) * a.bias.stride[0] +
                              (a.bias.size[1] == 1 ? 0 : head) * a.bias.stride[1]) *
                                 size_of(F::kTypes.bias.dtype);
#pragma unroll
      for (i32 j = 0; j < kQueries / 2; ++j) {
        float x = s[j];
        if constexpr (Config::kSoftcap) {  // tanh x = 1 - 2 / (e^2x + 1)
          const float t = 1 - 2 * arch::reciprocal(arch::exp2(x * inward) + 1);
          x = cap * t, slope[j] = 1 - t * t;
        } else {
          x *= scale;
        }
        const i32 query = query_of(first, j);
        if constexpr (kHasAlibi) x -= steep * fabsf(apart + float(query) - float(j / 2 % 2 * 8));
        if constexpr (kHasBias)
          x += load_bias(bias, min(query, a.bias.size[2] - 1) * a.bias.stride[2] +
                                   min(first_key() + i32(row) + j / 2 % 2 * 8, a.bias.size[3] - 1));
        s[j] = x;
      }
    }
    static float load_bias(const u8* from, i64 at) {
      if constexpr (F::kTypes.bias.dtype == DType::kF32) return reinterpret_cast<const float*>(from)[at];
      const u16 bits = reinterpret_cast<const u16*>(from)[at];
      return F::kTypes.bias.dtype == DType::kBf16 ? __uint_as_float(u32(bits) << 16) : arch::from_f16(bits);
    }

    void to_gradients() {
#pragma unroll
      for (i32 j = 0; j < kQueries / 8; ++j) {
        const float2 delta = load_pair(chip.delta(place.slot) + (8 * j + column) * 4);
#pragma unroll
        for (i32 c = 0; c < 4; ++c)
          dp[4 * j + c] = s[4 * j + c] * (dp[4 * j + c] - (c % 2 == 0 ? delta.x : delta.y));
      }
#pragma unroll
      for (i32 j = 0; j < kQueries / 4; ++j) ds[j / 4][j % 4] = pack_pair<kType>(dp[2 * j], dp[2 * j + 1]);
    }
    // ds [keys, queries] on chip, in rows of 128 bytes whose words are permuted by the row.
    void share_gradients(u32 turn) {
      const arch::OnChip to =
          chip.scores + turn * kScoreBytes + (w * 64 + thread / 32 * 16 + lane() % 16) * 128;
#pragma unroll
      for (u32 c = 0; c < kQueries / 16; ++c)
        arch::store_matrices(to + ((2 * c + lane() / 16) ^ (lane() % 8)) * 16, ds[c][0], ds[c][1], ds[c][2],
                             ds[c][3]);
      arch::show_to_copies();
      asm volatile("bar.sync 1, 256;" ::: "memory");
    }
    // dq = ds^T k, of which this group has half of the columns.
    void multiply_dq(float (&dq)[kHalf / 2], u32 turn) {
      const u64 left = arch::descriptor(chip.scores + turn * kScoreBytes);
      const u64 right = arch::descriptor(chip.keys + w * (kDim == 128 ? kKeys * 128 : 64));
#pragma unroll
      for (i32 c = 0; c < kKeys / 16; ++c)
        arch::multiply<kTerms, kAlongN, kAlongN>(dq, left + c * 2048 / 16, right + c * 2048 / 16, c > 0);
      arch::commit_products();
    }
    void hand_over(const float (&dq)[kHalf / 2], u32 turn) {
      arch::wait_barrier(chip.half_empty + 8 * w, turn ^ 1);
#pragma unroll
      for (i32 j = 0; j < kHalf / 8; ++j)
        asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(
                         (chip.halves + w * kHalfBytes + j * 2048 + thread * 16).at),
                     "f"(dq[4 * j]), "f"(dq[4 * j + 1]), "f"(dq[4 * j + 2]), "f"(dq[4 * j + 3])
                     : "memory");
      arch::show_to_copies();
      arch::arrive(chip.half_full + 8 * w);
    }

    void store(const Tensor& to, const float (&sums)[kDim / 2], float by) const {
#pragma unroll
      for (i32 r = 0; r < 2; ++r) {
        const i32 key = first_key() + i32(row) + 8 * r;
        if (key >= work.mask.keys) continue;
        const i64 at = work.batch * to.stride[0] + (work.tile.sequence.key_begin + key) * to.stride[1] +
                       work.group * to.stride[2];
        u32* const words = reinterpret_cast<u32*>(to.data + at * 2) + lane() % 4;
#pragma unroll
        for (i32 j = 0; j < kDim / 8; ++j)
          if (8 * j < to.size[3])
            words[4 * j] = pack_pair<kType>(sums[4 * j + 2 * r] * by, sums[4 * j + 2 * r + 1] * by);
      }
    }
  };
};

// One CTA for each step of each head: dq from the order of sums to rows.
template <class Config>
struct Finish : Facts<Config> {
  using F = Facts<Config>;
  using F::kType, F::kHasParts, F::kDim, F::kHalf;
  static constexpr u32 kThreads = 256;

  static void run(const FlashAttentionBackward& a, const TensorMap*, u8* workspace) {
    const AttentionRoom room(a, kDim);
    const i32 step = i32(blockIdx.x) % room.steps, line = i32(blockIdx.x) / room.steps;
    const SideTile tile = query_tile<kHasParts>(a, step);
    const u32 w = threadIdx.x / 128, thread = threadIdx.x % 128, t = thread % 4;
    const float scale = last_block(attention_mask(a, tile.sequence), tile.row) >= 0 ? scale_of(a) : 0;
    const float4* from = reinterpret_cast<const float4*>(workspace + room.dq) +
                         (i64(blockIdx.x) * 2 + w) * (kStepQueries * kHalf / 4) + thread;
    float4 sums[kHalf / 8];
#pragma unroll
    for (i32 j = 0; j < kHalf / 8; ++j) sums[j] = scale != 0 ? from[j * 128] : float4{0, 0, 0, 0};
    const Tensor& to = a.dq;
#pragma unroll
    for (i32 r = 0; r < 2; ++r) {
      const i32 row = tile.row + i32(thread / 32 * 16 + thread % 32 / 4) + 8 * r;
#pragma unroll
      for (i32 h = 0; h < kHalf / 32; ++h) {  // 32 columns; a thread has eight neighbours after the exchange
        u32 pairs[4], own[4];
#pragma unroll
        for (i32 j = 0; j < 4; ++j) {
          const float4 f = sums[4 * h + j];
          pairs[j] = r == 0 ? pack_pair<kType>(f.x * scale, f.y * scale)
                            : pack_pair<kType>(f.z * scale, f.w * scale);
        }
#pragma unroll
        for (u32 s = 0; s < 4; ++s) {
          const u32 give = t ^ s;
          const u32 got = __shfl_xor_sync(~0u,
                                          give == 0   ? pairs[0]
                                          : give == 1 ? pairs[1]
                                          : give == 2 ? pairs[2]
                                                      : pairs[3],
                                          s);
#pragma unroll
          for (u32 i = 0; i < 4; ++i)
            if (give == i) own[i] = got;
        }
        const i32 at = i32(w) * kHalf + h * 32 + i32(t) * 8;
        if (row >= tile.sequence.queries() || at >= to.size[3]) continue;
        const i64 place = line / a.q.size[2] * to.stride[0] +
                          (tile.sequence.query_begin + row) * to.stride[1] +
                          line % a.q.size[2] * to.stride[2] + at;
        *reinterpret_cast<uint4*>(to.data + place * 2) = {own[0], own[1], own[2], own[3]};
      }
    }
  }
};

}  // namespace flash_attention_backward
