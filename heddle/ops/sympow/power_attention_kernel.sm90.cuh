// power_attention as a whole kernel on sm_90a. One thread brings queries, and keys and values in blocks of 64 positions; groups of
// four warps have 64 queries each: scores in registers become weights, which are the left operands of the product with the values.
// exp(l_i - l_j) is exp(l_i - m) exp(m - l_j) with m the gates' sum at the end of the block of keys, where all queries come after the
// block; else it is computed for each pair, so that nothing overflows.
#pragma once

#include "heddle/kit/arch/bulk.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/arch/thread.cuh"
#include "heddle/kit/arch/wgmma.cuh"
#include "heddle/kit/arch/wgmma_products.cuh"
#include "heddle/kit/attention/products.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/move/chip.cuh"
#include "heddle/kit/move/roles.cuh"
#include "heddle/kit/move/slot_ring.cuh"
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
struct Kernel {
  static constexpr PowerAttention kTypes = Config::types();
  static constexpr DType kType = kTypes.q.dtype, kOut = kTypes.y.dtype;
  static constexpr arch::Terms kTerms = kType == DType::kBf16 ? arch::Terms::kBf16 : arch::Terms::kF16;
  static constexpr i32 kWideRows = Config::kWideRows, kColumns = Config::kColumns, kGroups = Config::kGroups;
  static constexpr i32 kKeys = 64, kRows = 64 * kGroups, kWide = (kColumns + 63) / 64;
  static constexpr u32 kBox = 64 * 128, kRowBytes = kRows * 128;
  using Ring = SlotRing<Config::kStages, (kWideRows + kWide) * kBox>;
  using Queries = SlotRing<1, kWideRows * kRowBytes>;
  static constexpr u32 kThreads = 128 * (kGroups + 1), kGateBytes = kGroups * 2 * kKeys * 4;

  using Producer = Role<128, 40>;
  using Multiplier = Role<128 * kGroups, kGroups == 2 ? 232 : kGroups == 3 ? 152 : 104>;
  using All = Roles<Producer, Multiplier>;

  using Place = QueryTile<kRows, kKeys>;

  static void run(const PowerAttention& a, const TensorMap* maps, u8*) {
    const arch::OnChip gates = chip() + (Queries::kBytes + Ring::kBytes);
    const Queries queries{chip(), gates + kGateBytes};
    const Ring ring{chip() + Queries::kBytes, queries.barriers + Queries::kBarrierBytes};
    if (threadIdx.x == 0) queries.init(kGroups), ring.init(kGroups);
    __syncthreads();
    if (threadIdx.x < 128) {
      All::template enter<Producer>();
      if (threadIdx.x == 0) produce(queries, ring, a, maps);
    } else {
      All::template enter<Multiplier>();
      multiply(queries, ring, gates, a);
    }
  }

  static void produce(const Queries& queries, const Ring& ring, const PowerAttention& a,
                      const TensorMap* maps) {
    typename Queries::Place q;
    typename Ring::Place place;
    const i32 all = tiles_of<kRows>(a);
#pragma unroll 1
    for (i32 t = i32(blockIdx.x); t < all; t += i32(gridDim.x)) {
      const Place at(a, t);
      const i32 blocks = at.blocks();
      if (blocks == 0) continue;
      queries.begin(q);
#pragma unroll
      for (i32 wide = 0; wide < kWideRows; ++wide)
#pragma unroll 1
        for (i32 row = 0; row < kRows; row += 64)
          arch::load_box(queries.slot(q) + (wide * kRowBytes + row * 128), maps, queries.full(q),
                         arch::Corner4{wide * 64, at.h, at.begin + row, at.b});
      q.next();
#pragma unroll 1
      for (i32 n = 0; n < blocks; ++n, place.next()) {
        ring.begin(place);
        const i32 key = at.chunk_begin + n * kKeys;
#pragma unroll
        for (i32 box = 0; box < kWideRows + kWide; ++box) {
          const bool of_keys = box < kWideRows;
          arch::load_box(ring.slot(place) + box * kBox, maps + (of_keys ? 1 : 2), ring.full(place),
                         arch::Corner4{(of_keys ? box : box - kWideRows) * 64, at.h, key, at.b});
        }
      }
    }
  }

  // The gates' sum of a position, within the tensor.
  static float gate(const PowerAttention& a, const Place& at, i32 t) {
    const i32 inside = min(t, a.l.size[1] - 1);
    return reinterpret_cast<const float*>(a.l.data)[at.b * a.l.stride[0] + inside * a.l.stride[1] + at.h];
  }
  static u8* row_of(const Tensor& tensor, const Place& at, i32 t, DType type) {
    return tensor.data +
           (at.b * tensor.stride[0] + t * tensor.stride[1] + at.h * tensor.stride[2]) * size_of(type);
  }

  static void multiply(const Queries& queries, const Ring& ring, arch::OnChip gates,
                       const PowerAttention& a) {
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
      if (gated) row_gate[0] = gate(a, at, at.begin + row), row_gate[1] = gate(a, at, at.begin + row + 8);
      float sums[kColumns / 2];
      begin_sums(sums, total, row_gate, factor, a, at, row);
      // Gates are asked for a block ahead.
      float next_gate = gated && member < kKeys ? gate(a, at, at.chunk_begin + i32(member)) : 0.0f;
      float next_last = gated ? gate(a, at, at.chunk_begin + kKeys - 1) : 0.0f;
      queries.wait(q);
      // No query of the group sees the blocks after `seen`.
      const i32 seen = first < at.end ? min(blocks, (first + 64 - at.chunk_begin) / kKeys) : 0;
      i32 n = 0;
#pragma unroll 1
      for (; n < seen; ++n) {
        const i32 key = at.chunk_begin + n * kKeys;
        ring.wait(place);
        const bool apart = key + kKeys <= first;  // all queries come after the block
        float scores[kKeys / 2];
        arch::keep(scores);
        arch::begin_products();
#pragma unroll
        for (i32 i = 0; i < 4 * kWideRows; ++i) {
          const u64 left =
              arch::descriptor(queries.slot(q) + (i / 4 * kRowBytes + group * 8192 + i % 4 * 32));
          const u64 right = arch::descriptor(ring.slot(place) + (i / 4 * kBox + i % 4 * 32));
          arch::multiply<kTerms, arch::Major::kK, arch::Major::kK>(scores, left, right, i > 0);
        }
        arch::commit_products();
        float of_row[2] = {factor, factor};
        const arch::OnChip here = mine + turn * (kKeys * 4);
        if (gated) {
          if (apart)
            of_row[0] *= __expf(row_gate[0] - next_last), of_row[1] *= __expf(row_gate[1] - next_last);
          if (member < kKeys) {
            const float value = apart ? __expf(next_last - next_gate) : next_gate;
            arch::store_shared(here + member * 4, value);
            next_gate = gate(a, at, key + kKeys + i32(member));
          }
          next_last = gate(a, at, key + 2 * kKeys - 1);
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
        multiply_weights<kTerms>(sums, weights, arch::descriptor(ring.slot(place) + kWideRows * kBox, kBox),
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
