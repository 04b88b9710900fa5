// gated_delta_rule as whole kernels for bf16, a chunk at a time. In a chunk that begins with the state S, let d_i be the decay from its
// begin to position i, and
//   L_ij = d_i / d_j beta_j k_i'k_j   for j < i
// Then errors of the chunk are (I + L)^-1 (v - d S'k), so that a state meets only prepared keys and values, (I + L)^-1 d k and
// (I + L)^-1 v (Yang et al., 2024: the WY form). `Prepare` does what needs no state, for all chunks at the same time; `Kernel` goes through
// the chunks, with the state in registers; `Answer` makes y, for all chunks at the same time. Where few heads have many chunks, `Segments`
// and `Join` find states that segments of the chunks begin with, and `Kernel` goes through all of them at the same time. States, prepared
// keys and errors are multiplied as sums of two bf16. No sum's order depends on the device.
#pragma once

#include "heddle/ops/recurrence/gated_delta_rule_scan_kernel.sm80.cuh"

namespace heddle::device::gated_delta_rule {

// Stores prepared values to `error`, and a chunk's record to the workspace.
template <class Config>
struct Prepare {
  static constexpr u32 kThreads = kDeltaThreads;
  static constexpr i32 kDim = Config::kDim, kPitch = delta_pitch(kDim), kLine = kDeltaLine;
  static constexpr GatedDeltaRule kTypes = Config::types();
  static constexpr tile::Budget kBudget = delta_prepare_budget(kDim, 0);  // values are last

  static void run(const GatedDeltaRule& a, const TensorMap*, u8* workspace) {
    u8* const chip = arch::dynamic_shared();
    const auto floats = [&](u32 offset) { return reinterpret_cast<float*>(chip + offset); };
    u8* const keys = chip + kBudget.offset("keys");
    u8* const values = chip + kBudget.offset("values");
    float* const couplings = floats(kBudget.offset("couplings"));
    float* const inverse = floats(kBudget.offset("inverse"));
    float* const decays = floats(kBudget.offset("decays"));
    float* const betas = floats(kBudget.offset("betas"));
    const i32 chunks = delta_chunks(a.q.size[1]), at = i32(blockIdx.x), warp = i32(threadIdx.x) / 32;
    const Chunk chunk = Chunk::of(a, at / chunks, at % chunks);
    copy_rows<kDim, kThreads>(keys, a.k, chunk);
    copy_rows<Config::kColumns, kThreads>(values, a.v, chunk);
    arch::commit_copies();
    if (warp == 0) store_gates<kTypes.g.dtype, kTypes.beta.dtype>(decays, betas, a, chunk);
    arch::wait_copies(0);
    __syncthreads();
    multiply_rows<kDim>(keys, keys, [&](i32 i, i32 j, float product) {
      couplings[i * kLine + j] = j < i ? decay(decays[i] - decays[j]) * product * betas[j] : 0.0f;
    });
    __syncthreads();
    if (warp == 0) invert(couplings, inverse);
    __syncthreads();
    store_values(a, chunk, inverse, values);
    u8* const record = workspace + i64(at) * DeltaRecord{kDim}.bytes();
    store_keys<DeltaRecord, kDim, i32(kThreads)>(
        record, keys, [&](i32 i, i32 j) { return inverse[i * kLine + j] * decay(decays[j]); });
    if (warp == 0) {
      float* const factors = reinterpret_cast<float*>(record + 2 * DeltaRecord{kDim}.plane());
      const float all = decays[kDeltaChunk - 1];
      factors[lane()] = betas[lane()] * decay(all - decays[lane()]);
      if (lane() == 0) factors[DeltaRecord::kStays] = decay(all);
    }
  }

 private:
  // Each lane has a column of (I + couplings)^-1.
  static void invert(const float* couplings, float* inverse) {
    float column[kDeltaChunk];
#pragma unroll
    for (i32 i = 0; i < kDeltaChunk; ++i) {
      float sum = i == i32(lane()) ? 1.0f : 0.0f;
#pragma unroll
      for (i32 j = 0; j < i; ++j) sum -= couplings[i * kLine + j] * column[j];
      inverse[i * kLine + i32(lane())] = column[i] = sum;
    }
  }

  static void store_values(const GatedDeltaRule& a, const Chunk& chunk, const float* inverse,
                           const u8* values) {
    multiply_square<Config::kColumns, kThreads>(
        [&](i32 i, i32 j) { return inverse[i * kLine + j]; }, values,
        [&](i32 i, i32 column, float first, float second) {
          if (chunk.has(i)) *reinterpret_cast<float2*>(chunk.at<4>(a.error, i, column)) = {first, second};
        });
  }
};

// y of a chunk from the state before it and its errors.
template <class Config>
struct Answer {
  static constexpr u32 kThreads = kDeltaThreads;
  static constexpr i32 kDim = Config::kDim, kPitch = delta_pitch(kDim), kLine = kDeltaLine;
  static constexpr i32 kColumns = Config::kColumns;
  static constexpr tile::Budget kBudget = delta_answer_budget(kDim);
  static constexpr GatedDeltaRule kTypes = Config::types();

  static void run(const GatedDeltaRule& a, const TensorMap*, u8*) {
    u8* const chip = arch::dynamic_shared();
    u8* const queries = chip + kBudget.offset("queries");
    u8* const keys = chip + kBudget.offset("keys");
    float* const scores = reinterpret_cast<float*>(chip + kBudget.offset("scores"));
    float* const decays = reinterpret_cast<float*>(chip + kBudget.offset("decays"));
    float* const betas = reinterpret_cast<float*>(chip + kBudget.offset("betas"));
    const i32 chunks = delta_chunks(a.q.size[1]), at = i32(blockIdx.x), warp = i32(threadIdx.x) / 32;
    const Chunk chunk = Chunk::of(a, at / chunks, at % chunks);
    const float scale = a.scale == 0.0f ? 1.0f / sqrtf(float(kDim)) : a.scale;
    copy_rows<kDim, kThreads>(queries, a.q, chunk);
    copy_rows<kDim, kThreads>(keys, a.k, chunk);
    arch::commit_copies();
    if (warp == 0) store_gates<kTypes.g.dtype, kTypes.beta.dtype>(decays, betas, a, chunk);
    arch::wait_copies(0);
    __syncthreads();
    multiply_rows<kDim>(queries, keys, [&](i32 i, i32 j, float product) {
      scores[i * kLine + j] = j <= i ? scale * decay(decays[i] - decays[j]) * product * betas[j] : 0.0f;
    });
    __syncthreads();
    for (i32 n = 8 * warp; n < kColumns; n += 8 * i32(kThreads) / 32) {
      float sums[2][4] = {};
      add_state(sums, a, chunk, queries, n);
#pragma unroll
      for (i32 m = 0; m < 2; ++m)
#pragma unroll
        for (i32 i = 0; i < 4; ++i) sums[m][i] *= scale * decay(decays[16 * m + i32(lane()) / 4 + i / 2 * 8]);
      add_errors(sums, a, chunk, scores, n);
      store(a, chunk, n, sums);
    }
  }

 private:
  // sums += queries times columns [n, n + 8) of the state.
  static void add_state(float (&sums)[2][4], const GatedDeltaRule& a, const Chunk& chunk, const u8* queries,
                        i32 n) {
    const i64 before =
        (i64(chunk.batch) * a.q.size[2] + chunk.head) * delta_chunks(a.q.size[1]) + chunk.number;
    const float* const state = reinterpret_cast<const float*>(a.starts.data) + before * (kDim * kColumns) +
                               i32(lane()) % 4 * 2 * kColumns + n + i32(lane()) / 4;
    const auto value = [&](i32 row) { return state[row * kColumns]; };
#pragma unroll
    for (i32 s = 0; s < kDim / 16; ++s) {
      const Right right = Right::of(16 * s, value);
#pragma unroll
      for (i32 m = 0; m < 2; ++m) {
        u32 left[4];
        load_left(left, queries + 16 * m * kPitch, kPitch, 16 * s);
        arch::multiply_add<true>(sums[m], left, right.low);
        arch::multiply_add<true>(sums[m], left, right.high);
      }
    }
  }

  // sums += scores times columns [n, n + 8) of the errors.
  static void add_errors(float (&sums)[2][4], const GatedDeltaRule& a, const Chunk& chunk,
                         const float* scores, i32 n) {
    const float* const errors = reinterpret_cast<const float*>(chunk.at<4>(a.error, 0, n + i32(lane()) / 4));
    const i32 left = a.q.size[1] - chunk.first, stride = i32(a.error.stride[1]);
    const auto value = [&](i32 row) {
      const i32 position = row + i32(lane()) % 4 * 2;
      return position < left ? errors[position * stride] : 0.0f;
    };
#pragma unroll
    for (i32 s = 0; s < kDeltaChunk / 16; ++s) {
      const Right right = Right::of(16 * s, value);
#pragma unroll
      for (i32 m = 0; m < 2; ++m) {
        const Left left = Left::of(16 * m, 16 * s, [&](i32 i, i32 j) { return scores[i * kLine + j]; });
        add_product(sums[m], left, right.high, right.low);
      }
    }
  }

  static void store(const GatedDeltaRule& a, const Chunk& chunk, i32 n, const float (&sums)[2][4]) {
#pragma unroll
    for (i32 m = 0; m < 2; ++m)
#pragma unroll
      for (i32 half = 0; half < 2; ++half) {
        const i32 i = 16 * m + i32(lane()) / 4 + 8 * half;
        if (chunk.has(i))
          *reinterpret_cast<u32*>(chunk.at<2>(a.y, i, n + i32(lane()) % 4 * 2)) =
              arch::pack_bf16(sums[m][2 * half], sums[m][2 * half + 1]);
      }
  }
};

}  // namespace heddle::device::gated_delta_rule
