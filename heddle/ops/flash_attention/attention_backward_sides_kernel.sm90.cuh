// The kernels before and after the main one of flash_attention_backward: lse and delta in the form that copies can take; dq, and dk and
// dv of split heads, in rows; and which keys and queries a CTA of the main one has.
#pragma once

#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/move/store_pair.cuh"
#include "heddle/ops/flash_attention/attention_parts_kernel.sm90.cuh"
#include "heddle/ops/flash_attention/flash_attention_backward.h"

namespace heddle::device::flash_attention_backward {

using namespace attention_parts;

constexpr float kLog2E = 1.4426950409f;
constexpr i64 kFar = 1 << 30;  // more than any number of keys

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
inline SideTile key_tile(const FlashAttentionBackward& a, i32 tile, i32 size) {
  if constexpr (!kHasParts) return {{0, a.q.size[1], 0, a.k.size[1]}, tile * size, 0};
  const Parts parts = Parts::of(a.cu_seqlens_k, a.cu_seqlens_q, a.k.size[1], a.q.size[1]);
  const i32 n = parts.part_of(tile, size);
  const AttentionRange keys = parts.range(n), rows = parts.other_range(n);
  const Parts queries = Parts::of(a.cu_seqlens_q, a.cu_seqlens_k, a.q.size[1], a.k.size[1]);
  return {{rows.begin, rows.end, keys.begin, keys.end},
          (tile - parts.first_tile(n, size)) * size,
          queries.first_tile(n, kStepQueries)};
}

// The last block of keys that any of a step's queries sees; -1: none.
inline i32 last_block(const AttentionMask& mask, i32 row, i32 size) {
  const i32 begin = mask.keys_of(row).begin,
            end = mask.keys_of(min(row + kStepQueries, mask.queries) - 1).end;
  return row < mask.queries && begin < end ? (end - 1) / size : -1;
}

template <class Config>
struct Facts {
  static constexpr FlashAttentionBackward kTypes = Config::types();
  static constexpr DType kType = kTypes.q.dtype;
  static constexpr bool kHasParts = kTypes.cu_seqlens_q.rank > 0, kHasLists = kTypes.kv_num_blocks.rank > 0;
  static constexpr bool kHasBias = kTypes.bias.rank > 0, kHasAlibi = kTypes.alibi_slopes.rank > 0;
  using Score = typename Config::Score;
  static constexpr bool kModifiesScores = Config::kSoftcap || kHasBias || kHasAlibi || Score::kChanges;
  static constexpr bool kBends = Config::kSoftcap || Score::kBends;  // scores have slopes other than 1
  static constexpr i32 kDim = Config::kDim, kHalf = kDim / 2, kKeys = block_keys(kDim);
  // Both groups have the same keys, and each half of the columns of dk and dv.
  static constexpr bool kShares = kKeys == 64;
  static constexpr i32 kColumns = heddle::flash_attention_backward::columns_of(kDim);
  static constexpr i32 kSumWords = kColumns / 4 * 256;  // dk and dv of a CTA, in words of 16 bytes
};

// The keys of a CTA, its split of the heads that share them, and the steps of queries that see any of them. CTAs add to dq of a step in
// the order of their keys. They are launched in that order, too: the first keys of several splits, then their next keys. So a CTA
// begins some time after the one whose turn comes before its own, and with a mask the longest CTAs run first. Each goes from its
// last step to its first.
// With block lists, CTAs with later keys are launched first and add first, one head at a time.
template <class Config>
struct KeyWork {
  static constexpr i32 kKeys = Facts<Config>::kKeys, kQueries = kStepQueries;
  static constexpr bool kHasLists = Facts<Config>::kHasLists, kShares = Facts<Config>::kShares;
  // CTAs of so many heads are launched together, and so many CTAs at most: what they read and add to stays in the L2 cache.
  static constexpr i32 kHeadsTogether = kHasLists ? 1 : kShares ? 8 : 16, kTogether = kShares ? 512 : 1024;

  i32 batch, group;  // group: of heads that share the keys
  i32 line, splits;  // line: the number of its split, among all
  i32 heads;         // a split has
  SideTile tile;
  i32 first, last;  // steps
  i32 lag;          // keys before its own number that a query sees

  static KeyWork of(const FlashAttentionBackward& a) {
    KeyWork made;
    made.find(a);
    return made;
  }
  void find(const FlashAttentionBackward& a) {
    const i32 tiles = attention_tiles(a.k.size[1], kKeys, a.cu_seqlens_k), at = i32(blockIdx.x);
    const i32 many = max(min(kTogether / tiles, kHeadsTogether), 1);
    const i32 first_line = at / (many * tiles) * many;
    const i32 all = i32(gridDim.x) / tiles;
    const i32 lines = min(many, all - first_line), among = at - first_line * tiles;
    const i32 n = among / lines;
    line = first_line + among % lines, splits = all / (a.k.size[0] * a.k.size[2]);
    batch = line / splits / a.k.size[2], group = line / splits % a.k.size[2];
    heads = a.q.size[2] / a.k.size[2] / splits;
    tile = key_tile<Facts<Config>::kHasParts>(a, kHasLists ? tiles - 1 - n : n, kKeys);
    const AttentionMask mask = attention_mask(a, tile.sequence);
    lag = i32(mask.left - mask.shift < kFar ? mask.left - mask.shift : kFar);
    const i32 end = min(tile.row + kKeys, mask.keys);
    first = last = 0;
    if (tile.row >= end) return;
    const i32 from = mask.queries_of(tile.row).begin, to = mask.queries_of(end - 1).end;
    if (from < to) first = from / kQueries, last = (to + kQueries - 1) / kQueries;
  }
  i32 block() const { return tile.row / kKeys; }
  // The number of CTAs that add to dq of that step before this one: those with earlier keys. They were
  // launched earlier.
  u32 before(i32 step) const { return u32(block() - max(step * kQueries - lag, 0) / kKeys); }
  i32 head(i32 n) const { return (group * splits + line % splits) * heads + n; }
  i32 steps() const { return heads * (last - first); }
};

// One CTA for each list of blocks of keys: in which order CTAs add to dq.
template <class Config>
struct Order : Facts<Config> {
  using Facts<Config>::kKeys;
  static constexpr u32 kThreads = 256;

  static void run(const FlashAttentionBackward& a, const TensorMap*, u8* workspace) {
    const AttentionRoom room(a, Config::kDim);
    const i64 row = i64(blockIdx.x) * room.later_row;
    u32* const later = reinterpret_cast<u32*>(workspace + room.later + row);
    u32* const named = reinterpret_cast<u32*>(workspace + room.named + row);
    const i32 tiles = blocks_of(a.k.size[1], kKeys), heads = a.kv_num_blocks.size[1],
              queries = a.kv_num_blocks.size[2];
    for (i32 tile = i32(threadIdx.x); tile <= tiles; tile += i32(kThreads)) named[tile] = 0;
    __syncthreads();
    const i32 line = i32(blockIdx.x) / queries;
    const BlockList list = list_of(Memory(), a.kv_num_blocks, a.kv_indices, line / heads, line % heads,
                                   i32(blockIdx.x) % queries, a.block_k);
    for (i32 n = i32(threadIdx.x); n < list.count; n += i32(kThreads)) {
      const AttentionRange keys = list.range(n, a.k.size[1]);
      for (i32 key = keys.begin; key < keys.end; key += kKeys) named[key / kKeys] = 1;
    }
    __syncthreads();
    for (i32 tile = i32(threadIdx.x); tile <= tiles; tile += i32(kThreads)) {
      u32 count = 0;
      for (i32 other = tile; other < tiles; ++other) count += named[other];
      later[tile] = count;
    }
  }
};

// The number of key tiles, from `each` on, that the first list of a head names. Rows follow of its other
// lists.
inline const u32* named_from(const FlashAttentionBackward& a, const u8* workspace, const AttentionRoom& room,
                             i32 batch, i32 head) {
  const i32* const size = a.kv_num_blocks.size;
  const i64 line = i64(size[0] == 1 ? 0 : batch) * size[1] + (size[1] == 1 ? 0 : head);
  return reinterpret_cast<const u32*>(workspace + room.later + line * size[2] * room.later_row);
}

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
    float* const to =
        reinterpret_cast<float*>(workspace + room.rows) + at / kStepQueries * (2 * kStepQueries) + query;
    to[0] = lse, to[kStepQueries] = delta;
  }
};

// Stores columns of the rows of dk or dv that a thread has parts of, from `first` on of those of its group of warps `w`.
template <class Config, i32 kCount>
__forceinline__ void store_keys(const Tensor& to, const KeyWork<Config>& work, u32 w, u32 thread, i32 first,
                                const float (&sums)[kCount], float by) {
  using F = Facts<Config>;
  const i32 first_key =
      work.tile.row + (F::kShares ? 0 : i32(w) * 64) + i32(thread / 32 * 16 + thread % 32 / 4);
  first += F::kShares ? i32(w) * F::kColumns : 0;
#pragma unroll
  for (i32 r = 0; r < 2; ++r) {
    const i32 key = first_key + 8 * r;
    if (key >= work.tile.sequence.keys()) continue;
    const i64 at = work.batch * to.stride[0] + (work.tile.sequence.key_begin + key) * to.stride[1] +
                   work.group * to.stride[2];
    u32* const words = reinterpret_cast<u32*>(to.data + (at + first) * 2) + thread % 4;
#pragma unroll
    for (i32 j = 0; j < kCount / 4; ++j)
      if (first + 8 * j < to.size[3])
        words[4 * j] = pack_pair<F::kType>(sums[4 * j + 2 * r] * by, sums[4 * j + 2 * r + 1] * by);
  }
}

// One CTA for each step of each head: dq from the order of sums to rows. Where heads are split, then some for the keys of each CTA of a
// first split: dk and dv, added up in the order of splits.
template <class Config>
struct Finish : Facts<Config> {
  using F = Facts<Config>;
  using F::kType, F::kHasParts, F::kHasLists, F::kDim, F::kHalf, F::kKeys, F::kColumns, F::kSumWords;
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = heddle::flash_attention_backward::kJoinedWords,
                       kJoining = heddle::flash_attention_backward::joining_ctas(kDim);

  static void run(const FlashAttentionBackward& a, const TensorMap*, u8* workspace) {
    const AttentionRoom room(a, kDim);
    const i32 all = a.q.size[0] * a.q.size[2] * room.steps;
    if (i32(blockIdx.x) >= all) return join(a, room, workspace, i32(blockIdx.x) - all);
    const i32 step = i32(blockIdx.x) % room.steps, line = i32(blockIdx.x) / room.steps;
    const SideTile tile = query_tile<kHasParts>(a, step);
    const u32 w = threadIdx.x / 128, thread = threadIdx.x % 128, t = thread % 4;
    const AttentionMask mask = attention_mask(a, tile.sequence);
    bool is_seen = last_block(mask, tile.row, kKeys) >= 0;
    if constexpr (kHasLists)
      is_seen = named_from(a, workspace, room, line / a.q.size[2],
                           line % a.q.size[2])[tile.row / a.block_q * (room.later_row / 4)] > 0;
    const float scale = is_seen ? scale_of(a) : 0;
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

 private:
  static void join(const FlashAttentionBackward& a, const AttentionRoom& room, const u8* workspace, i32 at) {
    const i32 first = at % kJoining * kWords, tile = at / kJoining % room.tiles,
              line = at / kJoining / room.tiles;
    const i32 splits = splits_of_heads(a, room);
    KeyWork<Config> work;
    work.batch = line / a.k.size[2], work.group = line % a.k.size[2];
    work.tile = key_tile<kHasParts>(a, tile, kKeys);
    const float4* from = reinterpret_cast<const float4*>(workspace + room.sums) +
                         (i64(line) * splits * room.tiles + tile) * kSumWords + first * kThreads +
                         threadIdx.x;
    float sums[4 * kWords] = {};
#pragma unroll 2
    for (i32 n = 0; n < splits; ++n, from += i64(room.tiles) * kSumWords) {
#pragma unroll
      for (i32 j = 0; j < kWords; ++j) {
        const float4 f = from[j * kThreads];
        sums[4 * j] += f.x, sums[4 * j + 1] += f.y, sums[4 * j + 2] += f.z, sums[4 * j + 3] += f.w;
      }
    }
    const bool is_dv = first >= kColumns / 8;
    store_keys(is_dv ? a.dv : a.dk, work, threadIdx.x / 128, threadIdx.x % 128, first % (kColumns / 8) * 8,
               sums, is_dv ? 1 : scale_of(a));
  }
};

}  // namespace heddle::device::flash_attention_backward
