// power_attention_keys_backward as a whole kernel on sm_90a, everything transposed: groups of four warps have 64 keys each, and queries
// come in blocks of 64, from those of the keys to the end of the chunk. Gradients of a row's sums come first, from `Rows`: (inverse,
// total) of each row in the workspace. Scores and gradients of weights are two products; weights and gradients of scores are, in
// registers, the left operands of the products that give dv and dk.
#pragma once

#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/pairs.cuh"
#include "heddle/kit/arch/thread.cuh"
#include "heddle/kit/arch/wgmma.cuh"
#include "heddle/kit/arch/wgmma_products.cuh"
#include "heddle/kit/attention/products.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/move/store_pair.cuh"
#include "heddle/kit/move/store_tile.cuh"
#include "heddle/kit/move/tile_mma.cuh"
#include "heddle/ops/sympow/power_attention_keys_backward.h"
#include "heddle/ops/sympow/power_attention_parts_kernel.sm90.cuh"
#include "heddle/ops/sympow/power_attention_sums_kernel.sm90.cuh"

namespace heddle::device::power_attention_keys_backward {

using namespace power_attention_parts;
using namespace power_attention_sums;

struct KernelConfig {
  static constexpr i32 kWideRows = 1;  // boxes of 64 elements of a key
  static constexpr i32 kColumns = 64;  // columns of v; a multiple of 8
  static constexpr i32 kPower = 2;
  static constexpr i32 kStages = 4;  // blocks of queries in flight
};

template <class Config>
struct Kernel;
template <class Config>
using FrameOf = Frame<Kernel<Config>, Config, PowerAttentionKeysBackward, 2, 2, true, 2 * 64 * 16>;

// Maps: q, k, v, dy.
template <class Config>
struct Kernel : FrameOf<Config> {
  using Base = FrameOf<Config>;
  using Base::kType, Base::kTerms, Base::kWideRows, Base::kColumns, Base::kRows, Base::kBox, Base::kRowBytes,
      Base::kDim;
  using Keys = typename Base::Own;
  using Ring = typename Base::Ring;
  static constexpr DType kOut = Base::kTypes.dk.dtype, kOutValues = Base::kTypes.dv.dtype;
  static constexpr i32 kQueries = Base::kBlock, kOwnMaps[2] = {1, 2}, kBlockMaps[2] = {0, 3};
  static constexpr u32 kGroupBytes = 2 * kQueries * 16;
  static constexpr tile::OperandTile kRowsOfQ = Base::kKeyTile.turned(),
                                     kRowsOfDy = Base::kValueTile.turned();

  // Tiles of a chunk, the longest first.
  struct Place {
    i32 b, h, begin, end;  // keys [begin, end) and further ones of the chunk

    Place(const PowerAttentionKeysBackward& a, i32 tile) {
      const ChunkTiles chunks = a.tiles();
      const i32 per = (chunks.chunk + kRows - 1) / kRows, all = per * chunks.chunks();
      const i32 chunk = tile % all / per;
      b = tile / all / a.q.size[2], h = tile / all % a.q.size[2];
      begin = chunks.chunk_begin(chunk) + tile % per * kRows, end = chunks.chunk_end(chunk);
    }
    i32 block(i32 n) const { return begin + n * kQueries; }
    // Blocks of queries that the tile reads.
    i32 blocks() const { return begin < end ? (end - begin + kQueries - 1) / kQueries : 0; }
  };

  static float gate(const PowerAttentionKeysBackward& a, const Place& at, i32 t) {
    const i32 inside = min(t, a.q.size[1] - 1);
    return a.l.exists() ? reinterpret_cast<const float*>(
                              a.l.data)[at.b * a.l.stride[0] + inside * a.l.stride[1] + at.h]
                        : 0.0f;
  }
  // The gradient of a row's sums, and the sum of its gates, within the tensors.
  static float4 facts_of(const PowerAttentionKeysBackward& a, const float2* rows, const Place& at, i32 t) {
    const i32 inside = min(t, a.q.size[1] - 1);
    const float2 given = rows[(i64(at.b) * a.q.size[1] + inside) * a.q.size[2] + at.h];
    return {given.x, given.y, gate(a, at, t), 0};
  }

  static void multiply(const Keys& keys, const Ring& ring, arch::OnChip facts,
                       const PowerAttentionKeysBackward& a, const float2* rows) {
    const u32 group = threadIdx.x / 128 - 1, member = threadIdx.x % 128;
    const i32 row = i32(group * 64 + member / 32 * 16 + lane() / 4);  // and the one 8 below
    const arch::OnChip mine = facts + group * kGroupBytes;
    typename Keys::Place k;
    typename Ring::Place place;
    const i32 all = tiles_of<kRows>(a);
    u32 turn = 0;
#pragma unroll 1
    for (i32 t = i32(blockIdx.x); t < all; t += i32(gridDim.x)) {
      const Place at(a, t);
      const i32 blocks = at.blocks(), first = at.begin + i32(group) * 64;  // the group's first key
      if (blocks == 0) continue;
      const float key_gate[2] = {gate(a, at, at.begin + row), gate(a, at, at.begin + row + 8)};
      float gate_sum[2] = {0, 0}, dk[kDim / 2], dv[kColumns / 2];
#pragma unroll
      for (i32 i = 0; i < kDim / 2; ++i) dk[i] = 0;
#pragma unroll
      for (i32 i = 0; i < kColumns / 2; ++i) dv[i] = 0;
      keys.wait(k);
      // Facts are asked for a block ahead.
      float4 next{};
      float next_gate = gate(a, at, first);  // the block's first query has it
      if (member < kQueries) next = facts_of(a, rows, at, first + i32(member));
#pragma unroll 1
      for (i32 n = 0; n < blocks; ++n, place.next()) {
        const i32 query = at.block(n);
        ring.wait(place);
        if (query < first || first >= at.end) {  // these queries come before the group's keys
          if (member == 0) ring.release(place);
          continue;
        }
        float scores[kQueries / 2], given[kQueries / 2];
        arch::keep(scores), arch::keep(given);
        arch::begin_products();
        Base::template product<kWideRows * 4>(scores, keys.slot(k) + group * 8192, ring.slot(place));
        Base::template product<(kColumns + 15) / 16>(given,
                                                     keys.slot(k) + (kWideRows * kRowBytes + group * 8192),
                                                     ring.slot(place) + kWideRows * kBox);
        arch::commit_products();
        const arch::OnChip here = mine + turn * (kGroupBytes / 2);
        const bool apart = query >= first + 64 && query + kQueries <= at.end;  // all come after the keys
        float of_key[2];
#pragma unroll
        for (i32 half = 0; half < 2; ++half)
          of_key[half] = apart ? __expf(next_gate - key_gate[half]) : key_gate[half];
        if (member < kQueries) {
          if (apart) next.z = __expf(next.z - next_gate);
          arch::store_floats(here + member * 16, next);
          next = facts_of(a, rows, at, query + kQueries + i32(member));
        }
        next_gate = gate(a, at, query + kQueries);
        arch::sync_threads<128>(1 + group);
        turn ^= 1;
        arch::wait_products<0>();
        arch::keep(scores), arch::keep(given);
        u32 slopes[kQueries / 16][4], weights[kQueries / 16][4];
        const Pairs pairs{a.scale, {of_key[0], of_key[1]}, here, at.begin + row - query, at.end - query};
        if (apart)
          differentiate<true>(slopes, weights, scores, given, gate_sum, pairs);
        else
          differentiate<false>(slopes, weights, scores, given, gate_sum, pairs);
        arch::keep(dk), arch::keep(dv);
        keep_fragments(slopes), keep_fragments(weights);
        arch::begin_products();
        const u64 q = arch::descriptor<kRowsOfQ>(ring.slot(place));
        const u64 dy = arch::descriptor<kRowsOfDy>(ring.slot(place) + kWideRows * kBox);
#pragma unroll
        for (i32 i = 0; i < kQueries / 16; ++i) {
          arch::multiply<kTerms, kRowsOfQ.major>(dk, slopes[i], step_of<kRowsOfQ>(q, i), true);
          arch::multiply<kTerms, kRowsOfDy.major>(dv, weights[i], step_of<kRowsOfDy>(dy, i), true);
        }
        arch::commit_products();
        arch::wait_products<0>();
        arch::keep(dk), arch::keep(dv);
        if (member == 0) ring.release(place);
      }
      if (member == 0) keys.release(k);
      k.next();
#pragma unroll
      for (i32 i = 0; i < kDim / 2; ++i) dk[i] *= a.scale;
      store<kOut>(dk, a.dk, at, row), store<kOutValues>(dv, a.dv, at, row);
      store_gates(gate_sum, a, at, row);
    }
  }

  // The terms of the pairs of a block, besides scores and gradients of weights.
  struct Pairs {
    float scale;
    float of_key[2];     // the thread's keys' parts of decays, or their sums of gates
    arch::OnChip facts;  // gradients of the queries' sums, and their parts of decays or sums of gates
    i32 behind, limit;  // queries of the block are seen from `behind`, for the thread's first key, to `limit`
  };
  // Makes weights and gradients of scores, and adds those of the keys' gates. kApart: all queries come after the keys, and decays are
  // products of a key's and a query's part; else they follow from sums of gates.
  template <bool kApart>
  static void differentiate(u32 (&slopes)[kQueries / 16][4], u32 (&weights)[kQueries / 16][4],
                            const float (&scores)[kQueries / 2], const float (&given)[kQueries / 2],
                            float (&gate_sum)[2], const Pairs& pairs) {
#pragma unroll
    for (i32 i = 0; i < kQueries / 8; ++i) {
      float slope[4], weight[4];
#pragma unroll
      for (i32 c = 0; c < 2; ++c) {
        const i32 query = i * 8 + i32(lane() % 4) * 2 + c;
        const float4 of = arch::load_floats(pairs.facts + u32(query) * 16);
#pragma unroll
        for (i32 half = 0; half < 2; ++half) {
          const i32 j = 2 * half + c;
          const float s = scores[4 * i + j] * pairs.scale, cube = Config::kPower == 2 ? s : s * s * s;
          float slant = cube;  // the weight is slant * s
          if constexpr (kApart)
            slant *= of.z * pairs.of_key[half];
          else
            slant = query >= pairs.behind + half * 8 && query < pairs.limit
                        ? slant * __expf(of.z - pairs.of_key[half])
                        : 0.0f;
          const float value = (given[4 * i + j] * of.x + of.y) * slant;
          gate_sum[half] += value * s;
          slope[j] = value * float(Config::kPower), weight[j] = slant * s * of.x;
        }
      }
      slopes[i / 2][i % 2 * 2] = pack_pair<kType>(slope[0], slope[1]);
      slopes[i / 2][i % 2 * 2 + 1] = pack_pair<kType>(slope[2], slope[3]);
      weights[i / 2][i % 2 * 2] = pack_pair<kType>(weight[0], weight[1]);
      weights[i / 2][i % 2 * 2 + 1] = pack_pair<kType>(weight[2], weight[3]);
    }
  }

  template <DType kTo, i32 kSums>
  static void store(const float (&sums)[kSums], const Tensor& to, const Place& at, i32 row) {
#pragma unroll
    for (i32 half = 0; half < 2; ++half) {
      const i32 t = at.begin + row + half * 8;
      if (t >= at.end) continue;
      u8* const there =
          to.data + (at.b * to.stride[0] + t * to.stride[1] + at.h * to.stride[2]) * size_of(kTo);
#pragma unroll
      for (i32 j = 0; j < kSums / 4; ++j)
        if (j * 8 < to.size[3])
          reinterpret_cast<u32*>(there)[4 * j + lane() % 4] =
              pack_pair<kTo>(sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1]);
    }
  }
  static void store_gates(const float (&gate_sum)[2], const PowerAttentionKeysBackward& a, const Place& at,
                          i32 row) {
#pragma unroll
    for (i32 half = 0; half < 2; ++half) {
      float sum = gate_sum[half];
      sum += __shfl_xor_sync(~0u, sum, 1);
      sum += __shfl_xor_sync(~0u, sum, 2);
      const i32 t = at.begin + row + half * 8;
      if (t >= at.end || lane() % 4 != 0) continue;
      const auto element = [&](const Tensor& tensor) {
        return reinterpret_cast<float*>(tensor.data) +
               (at.b * tensor.stride[0] + t * tensor.stride[1] + at.h);
      };
      *element(a.dl) = *element(a.dl_rows) - sum;
    }
  }
};

}  // namespace heddle::device::power_attention_keys_backward
