// power_attention as a whole kernel on sm_90a. One thread brings queries, and keys and values in blocks of 64 positions; groups of
// four warps have 64 queries each: scores in registers become weights, which are the left operands of the product with the values.
// exp(l_i - l_j) is exp(l_i - m) exp(m - l_j) with m the gates' sum at the end of the block of keys, where all queries come after the
// block; else it is computed for each pair, so that nothing overflows.
#pragma once

#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/thread.cuh"
#include "heddle/kit/arch/wgmma.cuh"
#include "heddle/kit/arch/wgmma_products.cuh"
#include "heddle/kit/attention/products.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/move/store_pair.cuh"
#include "heddle/kit/move/store_tile.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/sympow/power_attention.h"
#include "heddle/ops/sympow/power_attention_parts_kernel.sm90.cuh"

namespace heddle::device::power_attention {

using namespace power_attention_parts;

struct KernelConfig {
  static constexpr i32 kWideRows = 1;  // boxes of 64 elements of a query
  static constexpr i32 kColumns = 64;  // columns of v; a multiple of 8
  static constexpr i32 kPower = 2;
  static constexpr i32 kGroups = 4;   // groups of four warps
  static constexpr i32 kOverlap = 0;  // 1: values are multiplied while the next scores are
  static constexpr i32 kStages = 5;   // blocks of keys in flight
};

template <class Config>
struct Kernel;
template <class Config>
using FrameOf = Frame<Kernel<Config>, Config, PowerAttention, Config::kGroups, 1, false, 2 * 64 * 4>;

template <class Config>
struct Kernel : FrameOf<Config> {
  using Base = FrameOf<Config>;
  using Base::kType, Base::kTerms, Base::kWideRows, Base::kColumns, Base::kRows, Base::kBox, Base::kRowBytes;
  using Queries = typename Base::Own;
  using Ring = typename Base::Ring;
  static constexpr DType kOut = Base::kTypes.y.dtype;
  static constexpr i32 kKeys = Base::kBlock, kOwnMaps[2] = {0, 0}, kBlockMaps[2] = {1, 2};

  using Place = QueryTile<kRows, kKeys>;

  static u8* row_of(const Tensor& tensor, const Place& at, i32 t, DType type) {
    return tensor.data +
           (at.b * tensor.stride[0] + t * tensor.stride[1] + at.h * tensor.stride[2]) * size_of(type);
  }

  static void multiply(const Queries& queries, const Ring& ring, arch::OnChip gates, const PowerAttention& a,
                       const float2*) {
    const u32 group = threadIdx.x / 128 - 1, member = threadIdx.x % 128;
    const i32 row = i32(group * 64 + member / 32 * 16 + lane() / 4);  // and the one 8 below
    const arch::OnChip mine = gates + group * (2 * kKeys * 4);
    typename Queries::Place q;
    typename Ring::Place place, done;
    const float factor = Config::kPower == 2 ? a.scale * a.scale : a.scale * a.scale * (a.scale * a.scale);
    const bool gated = a.l.exists();
    const i32 all = tiles_of<kRows>(a);
    u32 turn = 0;
#pragma unroll 1
    for (i32 t = i32(blockIdx.x); t < all; t += i32(gridDim.x)) {
      const Place at(a, t);
      const i32 blocks = at.blocks(), first = at.begin + i32(group) * 64;  // the group's first query
      if (blocks == 0) continue;
      float row_gate[2] = {0, 0}, total[2] = {0, 0};
      if (gated)
        row_gate[0] = gate_of(a, at, at.begin + row), row_gate[1] = gate_of(a, at, at.begin + row + 8);
      float sums[kColumns / 2];
      begin_sums(sums, total, row_gate, factor, a, at, row);
      // Gates are asked for a block ahead.
      float next_gate = gated && member < kKeys ? gate_of(a, at, at.chunk_begin + i32(member)) : 0.0f;
      float next_last = gated ? gate_of(a, at, at.chunk_begin + kKeys - 1) : 0.0f;
      queries.wait(q);
      // No query of the group sees the blocks after `seen`.
      const i32 seen = first < at.end ? min(blocks, (first + 64 - at.chunk_begin) / kKeys) : 0;
      i32 n = 0;
#pragma unroll 1
      for (; n < seen; ++n) {
        const i32 key = at.block(n);
        ring.wait(place);
        const bool apart = key + kKeys <= first;  // all queries come after the block
        float scores[kKeys / 2];
        arch::keep(scores);
        arch::begin_products();
        Base::template product<kWideRows * 4>(scores, queries.slot(q) + group * 8192, ring.slot(place));
        arch::commit_products();
        float of_row[2] = {factor, factor};
        const arch::OnChip here = mine + turn * (kKeys * 4);
        if (gated) {
          if (apart)
            of_row[0] *= __expf(row_gate[0] - next_last), of_row[1] *= __expf(row_gate[1] - next_last);
          if (member < kKeys) {
            const float value = apart ? __expf(next_last - next_gate) : next_gate;
            arch::store_shared(here + member * 4, value);
            next_gate = gate_of(a, at, key + kKeys + i32(member));
          }
          next_last = gate_of(a, at, key + 2 * kKeys - 1);
          arch::sync_threads<128>(1 + group);
          turn ^= 1;
        }
        arch::wait_products<0>();  // the values of the block before, too
        arch::keep(scores);
        if constexpr (Config::kOverlap != 0) {
          arch::keep(sums);
          if (n > 0) release(ring, done, member);
        }
        const i32 ahead = at.begin + row - key;
        if (gated && apart)
          weigh<true, true>(scores, of_row, row_gate, here, ahead);
        else if (gated)
          weigh<true, false>(scores, of_row, row_gate, here, ahead);
        else if (apart)
          weigh<false, true>(scores, of_row, row_gate, here, ahead);
        else
          weigh<false, false>(scores, of_row, row_gate, here, ahead);
        u32 weights[kKeys / 16][4];
#pragma unroll
        for (i32 i = 0; i < kKeys / 4; ++i) {
          weights[i / 4][i % 4] = pack_pair<kType>(scores[2 * i], scores[2 * i + 1]);
          total[i % 2] += scores[2 * i] + scores[2 * i + 1];
        }
        multiply_weights<kTerms, Base::kValueTile>(
            sums, weights, arch::descriptor<Base::kValueTile.turned()>(ring.slot(place) + kWideRows * kBox),
            true);
        place.next();
        if constexpr (Config::kOverlap == 0) {
          arch::wait_products<0>();
          arch::keep(sums);
          release(ring, done, member);
        }
      }
      if constexpr (Config::kOverlap != 0) {
        arch::wait_products<0>();
        arch::keep(sums);
        if (seen > 0) release(ring, done, member);
      }
#pragma unroll 1
      for (; n < blocks; ++n, place.next()) {
        ring.wait(place);
        release(ring, done, member);
      }
      if (member == 0) queries.release(q);
      q.next();
      finish(sums, total, a, at, row);
    }
  }
  static void release(const Ring& ring, typename Ring::Place& done, u32 member) {
    if (member == 0) ring.release(done);
    done.next();
  }

  // Scores become weights; `ahead`: how many positions the thread's first query is after the block's first key.
  // kApart: all queries come after the block.
  template <bool kGated, bool kApart>
  static void weigh(float (&s)[kKeys / 2], const float (&of_row)[2], const float (&row_gate)[2],
                    arch::OnChip gates, i32 ahead) {
#pragma unroll
    for (i32 i = 0; i < kKeys / 8; ++i) {
      float of_key[2] = {1, 1};
      if constexpr (kGated) arch::load_shared_pair(gates + (i * 32 + lane() % 4 * 8), of_key);
#pragma unroll
      for (i32 j = 0; j < 4; ++j) {
        float& value = s[4 * i + j];
        const float square = value * value, raised = Config::kPower == 2 ? square : square * square;
        if constexpr (kApart) {
          value = raised * (kGated ? of_row[j / 2] * of_key[j % 2] : of_row[j / 2]);
        } else {
          const i32 key = i * 8 + i32(lane() % 4) * 2 + j % 2;
          const float decay = kGated ? __expf(row_gate[j / 2] - of_key[j % 2]) : 1.0f;
          value = key <= ahead + j / 2 * 8 ? raised * (of_row[j / 2] * decay) : 0.0f;
        }
      }
    }
  }

  // Begins the sums with what the past gives.
  static void begin_sums(float (&sums)[kColumns / 2], float (&total)[2], const float (&row_gate)[2],
                         float factor, const PowerAttention& a, const Place& at, i32 row) {
#pragma unroll
    for (i32 half = 0; half < 2; ++half) {
      const i32 t = at.begin + row + half * 8;
      const bool there = a.past.exists() && t < at.end;
      const float of_past = factor * __expf(row_gate[half]);
      const u8* const from = row_of(a.past, at, t, kType);
#pragma unroll
      for (i32 j = 0; j < kColumns / 8; ++j) {
        const u32 pair = there ? reinterpret_cast<const u32*>(from)[4 * j + lane() % 4] : 0u;
        const float2 value = unpack_pair<kType>(pair);
        sums[4 * j + 2 * half] = value.x * of_past, sums[4 * j + 2 * half + 1] = value.y * of_past;
      }
      // One lane of a row has the past's part of the total.
      if (a.normalise && there && lane() % 4 == 0)
        total[half] = load_element(kType, from, kColumns) * of_past;
    }
  }
  static void finish(float (&sums)[kColumns / 2], const float (&total)[2], const PowerAttention& a,
                     const Place& at, i32 row) {
#pragma unroll
    for (i32 half = 0; half < 2; ++half) {
      float all = total[half];
      all += __shfl_xor_sync(~0u, all, 1);
      all += __shfl_xor_sync(~0u, all, 2);
      const i32 t = at.begin + row + half * 8;
      if (t >= at.end) continue;
      const float scale = a.normalise ? 1.0f / (all + a.eps) : 1.0f;
      u8* const to = row_of(a.y, at, t, kOut);
#pragma unroll
      for (i32 j = 0; j < kColumns / 8; ++j)
        reinterpret_cast<u32*>(to)[4 * j + lane() % 4] =
            pack_pair<kOut>(sums[4 * j + 2 * half] * scale, sums[4 * j + 2 * half + 1] * scale);
      if (lane() % 4 == 0)
        reinterpret_cast<float*>(a.total.data)[at.b * a.total.stride[0] + t * a.total.stride[1] + at.h] = all;
    }
  }
};

}  // namespace heddle::device::power_attention
