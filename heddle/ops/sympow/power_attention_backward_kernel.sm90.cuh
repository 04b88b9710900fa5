// power_attention_backward as a whole kernel on sm_90a, after the forward kernel. Gradients of a row's sums come first, from `Rows`:
// (inverse, total) of each row in the workspace. Then groups of four warps have 64 queries each: scores and gradients of weights by
// two products, and the gradients of scores, in registers, times the keys.
#pragma once

#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/thread.cuh"
#include "heddle/kit/arch/wgmma.cuh"
#include "heddle/kit/arch/wgmma_products.cuh"
#include "heddle/kit/attention/products.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/move/store_pair.cuh"
#include "heddle/kit/move/store_tile.cuh"
#include "heddle/ops/sympow/power_attention_backward.h"
#include "heddle/ops/sympow/power_attention_parts_kernel.sm90.cuh"
#include "heddle/ops/sympow/power_attention_sums_kernel.sm90.cuh"

namespace heddle::device::power_attention_backward {

using namespace power_attention_parts;
using namespace power_attention_sums;

struct KernelConfig {
  static constexpr i32 kWideRows = 1;  // boxes of 64 elements of a query
  static constexpr i32 kColumns = 64;  // columns of v; a multiple of 8
  static constexpr i32 kPower = 2;
  static constexpr i32 kStages = 4;  // blocks of keys in flight
};

template <class Config>
struct Kernel;
template <class Config>
using FrameOf = Frame<Kernel<Config>, Config, PowerAttentionBackward, 2, 2, true, 2 * 64 * 4>;

// Maps: q, k, v, dy.
template <class Config>
struct Kernel : FrameOf<Config> {
  using Base = FrameOf<Config>;
  using Base::kType, Base::kTerms, Base::kWideRows, Base::kColumns, Base::kRows, Base::kBox, Base::kRowBytes,
      Base::kDim;
  using Queries = typename Base::Own;
  using Ring = typename Base::Ring;
  static constexpr DType kOut = Base::kTypes.dq.dtype;
  static constexpr i32 kKeys = Base::kBlock, kOwnMaps[2] = {0, 3}, kBlockMaps[2] = {1, 2};

  using Place = QueryTile<kRows, kKeys>;

  // The gradient of a row's sums, within the tensor.
  static float2 of_row(const PowerAttentionBackward& a, const float2* rows, const Place& at, i32 t) {
    const i32 inside = min(t, a.q.size[1] - 1);
    return rows[(i64(at.b) * a.q.size[1] + inside) * a.q.size[2] + at.h];
  }

  static void multiply(const Queries& queries, const Ring& ring, arch::OnChip gates,
                       const PowerAttentionBackward& a, const float2* rows) {
    const u32 group = threadIdx.x / 128 - 1, member = threadIdx.x % 128;
    const i32 row = i32(group * 64 + member / 32 * 16 + lane() / 4);  // and the one 8 below
    const arch::OnChip mine = gates + group * (2 * kKeys * 4);
    typename Queries::Place q;
    typename Ring::Place place;
    const bool gated = a.l.exists();
    const i32 all = tiles_of<kRows>(a);
    u32 turn = 0;
#pragma unroll 1
    for (i32 t = i32(blockIdx.x); t < all; t += i32(gridDim.x)) {
      const Place at(a, t);
      const i32 blocks = at.blocks(), first = at.begin + i32(group) * 64;  // the group's first query
      if (blocks == 0) continue;
      float row_gate[2] = {0, 0}, gate_sum[2] = {0, 0};
      if (gated)
        row_gate[0] = gate_of(a, at, at.begin + row), row_gate[1] = gate_of(a, at, at.begin + row + 8);
      const float2 given[2] = {of_row(a, rows, at, at.begin + row), of_row(a, rows, at, at.begin + row + 8)};
      float sums[kDim / 2];
#pragma unroll
      for (i32 i = 0; i < kDim / 2; ++i) sums[i] = 0;
      // Gates are asked for a block ahead.
      float next_gate = gated && member < kKeys ? gate_of(a, at, at.chunk_begin + i32(member)) : 0.0f;
      float next_last = gated ? gate_of(a, at, at.chunk_begin + kKeys - 1) : 0.0f;
      queries.wait(q);
#pragma unroll 1
      for (i32 n = 0; n < blocks; ++n, place.next()) {
        const i32 key = at.block(n);
        ring.wait(place);
        if (key >= first + 64 || first >= at.end) {  // no query of the group sees the block
          if (member == 0) ring.release(place);
          continue;
        }
        float scores[kKeys / 2], weights[kKeys / 2];
        arch::keep(scores), arch::keep(weights);
        arch::begin_products();
        Base::template product<kWideRows * 4>(scores, queries.slot(q) + group * 8192, ring.slot(place));
        Base::template product<(kColumns + 15) / 16>(weights,
                                                     queries.slot(q) + (kWideRows * kRowBytes + group * 8192),
                                                     ring.slot(place) + kWideRows * kBox);
        arch::commit_products();
        const arch::OnChip here = mine + turn * (kKeys * 4);
        const bool apart = key + kKeys <= first;  // all queries come after the block
        float of_row[2] = {1, 1};
        if (gated) {
          if (apart) of_row[0] = __expf(row_gate[0] - next_last), of_row[1] = __expf(row_gate[1] - next_last);
          if (member < kKeys) {
            const float value = apart ? __expf(next_last - next_gate) : next_gate;
            arch::store_shared(here + member * 4, value);
            next_gate = gate_of(a, at, key + kKeys + i32(member));
          }
          next_last = gate_of(a, at, key + 2 * kKeys - 1);
          arch::sync_threads<128>(1 + group);
          turn ^= 1;
        }
        arch::wait_products<0>();
        arch::keep(scores), arch::keep(weights);
        Pairs pairs{a.scale, {of_row[0], of_row[1]}, {given[0], given[1]}, here, at.begin + row - key};
        if (!apart) pairs.of_row[0] = row_gate[0], pairs.of_row[1] = row_gate[1];
        u32 slopes[kKeys / 16][4];
        if (gated && apart)
          differentiate<true, true>(slopes, scores, weights, gate_sum, pairs);
        else if (gated)
          differentiate<true, false>(slopes, scores, weights, gate_sum, pairs);
        else if (apart)
          differentiate<false, true>(slopes, scores, weights, gate_sum, pairs);
        else
          differentiate<false, false>(slopes, scores, weights, gate_sum, pairs);
        multiply_weights<kTerms, Base::kKeyTile>(
            sums, slopes, arch::descriptor<Base::kKeyTile.turned()>(ring.slot(place)), true);
        arch::wait_products<0>();
        arch::keep(sums);
        if (member == 0) ring.release(place);
      }
      if (member == 0) queries.release(q);
      q.next();
      finish(sums, gate_sum, row_gate, given, a, at, row);
    }
  }

  // The terms of the pairs of a block, besides scores and gradients of weights.
  struct Pairs {
    float scale;
    float of_row[2];     // the thread's rows' parts of decays, or their sums of gates
    float2 given[2];     // gradients of the rows' sums
    arch::OnChip gates;  // the keys' parts of decays, or their sums of gates
    i32 ahead;           // positions from the block's first key to the thread's first query
  };
  // Makes gradients of scores, and adds those of the row's gates. kApart: all queries come after the block, and decays are products of
  // a row's and a key's part; else they follow from sums of gates.
  template <bool kGated, bool kApart>
  static void differentiate(u32 (&slopes)[kKeys / 16][4], const float (&scores)[kKeys / 2],
                            const float (&weights)[kKeys / 2], float (&gate_sum)[2], const Pairs& pairs) {
#pragma unroll
    for (i32 i = 0; i < kKeys / 8; ++i) {
      float of_key[2] = {0, 0}, slope[4];
      if constexpr (kGated) arch::load_shared_pair(pairs.gates + (i * 32 + lane() % 4 * 8), of_key);
#pragma unroll
      for (i32 j = 0; j < 4; ++j) {
        const i32 key = i * 8 + i32(lane() % 4) * 2 + j % 2;
        const float s = scores[4 * i + j] * pairs.scale, cube = Config::kPower == 2 ? s : s * s * s;
        float decay = 1;
        if constexpr (kGated && kApart) decay = pairs.of_row[j / 2] * of_key[j % 2];
        if constexpr (kGated && !kApart) decay = __expf(pairs.of_row[j / 2] - of_key[j % 2]);
        const float of = weights[4 * i + j] * pairs.given[j / 2].x + pairs.given[j / 2].y;
        float value = of * decay * cube;  // times power: the slope
        if constexpr (!kApart) value = key <= pairs.ahead + j / 2 * 8 ? value : 0.0f;
        gate_sum[j / 2] += value * s;
        slope[j] = value * float(Config::kPower);
      }
      slopes[i / 2][i % 2 * 2] = pack_pair<kType>(slope[0], slope[1]);
      slopes[i / 2][i % 2 * 2 + 1] = pack_pair<kType>(slope[2], slope[3]);
    }
  }

  static void finish(const float (&sums)[kDim / 2], const float (&gate_sum)[2], const float (&row_gate)[2],
                     const float2 (&given)[2], const PowerAttentionBackward& a, const Place& at, i32 row) {
    const float square = a.scale * a.scale, factor = Config::kPower == 2 ? square : square * square;
#pragma unroll
    for (i32 half = 0; half < 2; ++half) {
      const i32 t = at.begin + row + half * 8;
      float of_gate = gate_sum[half];
      if (a.past.exists() && t < at.end)
        of_gate += past_part(a, at, t, given[half]) * (factor * __expf(row_gate[half]));
      of_gate += __shfl_xor_sync(~0u, of_gate, 1);
      of_gate += __shfl_xor_sync(~0u, of_gate, 2);
      if (t >= at.end) continue;
      u8* const to =
          a.dq.data + (at.b * a.dq.stride[0] + t * a.dq.stride[1] + at.h * a.dq.stride[2]) * size_of(kOut);
#pragma unroll
      for (i32 j = 0; j < kDim / 8; ++j)
        if (j * 8 < a.dq.size[3])
          reinterpret_cast<u32*>(to)[4 * j + lane() % 4] =
              pack_pair<kOut>(sums[4 * j + 2 * half] * a.scale, sums[4 * j + 2 * half + 1] * a.scale);
      if (lane() % 4 == 0)
        reinterpret_cast<float*>(
            a.dl_rows.data)[at.b * a.dl_rows.stride[0] + t * a.dl_rows.stride[1] + at.h] = of_gate;
    }
  }
  // The lane's part of the gradient of the row's sums times the past.
  static float past_part(const PowerAttentionBackward& a, const Place& at, i32 t, const float2& given) {
    const i64 past = at.b * a.past.stride[0] + t * a.past.stride[1] + at.h * a.past.stride[2];
    const i64 dy = at.b * a.dy.stride[0] + t * a.dy.stride[1] + at.h * a.dy.stride[2];
    const auto* const before = reinterpret_cast<const u32*>(a.past.data + past * size_of(kType));
    const auto* const gradient = reinterpret_cast<const u32*>(a.dy.data + dy * size_of(kType));
    float sum = 0;
#pragma unroll
    for (i32 j = 0; j < kColumns / 8; ++j) {
      const float2 one = unpack_pair<kType>(before[4 * j + lane() % 4]);
      const float2 other = unpack_pair<kType>(gradient[4 * j + lane() % 4]);
      sum += one.x * other.x + one.y * other.y;
    }
    sum *= given.x;
    if (a.normalise && lane() % 4 == 0) sum += given.y * load_element(kType, a.past.data, past + kColumns);
    return sum;
  }
};

}  // namespace heddle::device::power_attention_backward
