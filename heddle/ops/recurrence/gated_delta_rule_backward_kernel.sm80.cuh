// gated_delta_rule_backward as whole kernels for bf16, a chunk at a time from the last, with the words of gated_delta_rule's kernels. In a
// chunk after which the state has the gradient G, let P_ij = scale d_i / d_j q_i'k_j for j <= i, A_ij = d_i / d_j k_i'k_j for j < i, and
// b_j the decay from position j to the chunk's end. Then
//   x = (I + A' beta)^-1 (P' dy + b k G),  z = beta x (the gradient of errors),
//   the gradient before the chunk is d_n G + scale (d q)' dy - (d k)' z
// `Prepare` does what needs no G for all chunks at the same time; `Kernel` goes through the chunks, with G in registers; `Answer` makes
// the other gradients, for all chunks at the same time.
#pragma once

#include "heddle/ops/recurrence/delta_state_kernel.sm80.cuh"
#include "heddle/ops/recurrence/gated_delta_rule_backward.h"

namespace heddle::device::gated_delta_rule_backward {

using namespace delta;

struct KernelConfig {
  static constexpr i32 kKernel = 1;
  static constexpr i32 kDim = 128;      // elements of a key
  static constexpr i32 kColumns = 128;  // elements of a value
  static constexpr i32 kWarps = 4;      // a scan has, each with 16 columns of the state
  static constexpr i32 kStages = 3;     // chunks in flight in a scan
};

// The workspace: records of all chunks, then x of all chunks, then the gradients of states after chunks.
template <i32 kDim, i32 kColumns>
struct Workspace {
  static constexpr i32 kX = kDeltaChunk * kColumns, kState = kDim * kColumns;  // floats of a chunk

  u8* data;
  i64 chunks;  // all heads have together

  u8* record(i64 chunk) const { return data + chunk * DeltaBackwardRecord{kDim}.bytes(); }
  float* x(i64 chunk) const { return reinterpret_cast<float*>(record(chunks)) + chunk * kX; }
  float* after(i64 chunk) const { return x(chunks) + chunk * kState; }
};

inline float scale_of(const GatedDeltaRuleBackward& a, i32 dim) {
  return a.scale == 0.0f ? 1.0f / sqrtf(float(dim)) : a.scale;
}

// Stores (I + A' beta)^-1 P' dy to x, and a chunk's record.
template <class Config>
struct Prepare {
  static constexpr u32 kThreads = kDeltaThreads;
  static constexpr i32 kDim = Config::kDim, kColumns = Config::kColumns, kLine = kDeltaLine;
  static constexpr GatedDeltaRuleBackward kTypes = Config::types();
  static constexpr tile::Budget kBudget = delta_backward_prepare_budget(kDim, kColumns);

  static void run(const GatedDeltaRuleBackward& a, const TensorMap*, u8* workspace) {
    u8* const chip = arch::dynamic_shared();
    const auto floats = [&](u32 offset) { return reinterpret_cast<float*>(chip + offset); };
    u8* const queries = chip + kBudget.offset("queries");
    u8* const keys = chip + kBudget.offset("keys");
    u8* const dy = chip + kBudget.offset("dy");
    float* const scores = floats(kBudget.offset("scores"));
    float* const couplings = floats(kBudget.offset("couplings"));
    float* const inverse = floats(kBudget.offset("inverse"));
    float* const product = floats(kBudget.offset("product"));
    float* const decays = floats(kBudget.offset("decays"));
    float* const betas = floats(kBudget.offset("betas"));
    const i32 chunks = delta_chunks(a.q.size[1]), at = i32(blockIdx.x), warp = i32(threadIdx.x) / 32;
    const Chunk chunk = Chunk::of(a, at / chunks, at % chunks);
    const float scale = scale_of(a, kDim);
    copy_rows<kDim, kThreads>(queries, a.q, chunk);
    copy_rows<kDim, kThreads>(keys, a.k, chunk);
    copy_rows<kColumns, kThreads>(dy, a.dy, chunk);
    arch::commit_copies();
    if (warp == 0) store_gates<kTypes.g.dtype, kTypes.beta.dtype>(decays, betas, a, chunk);
    arch::wait_copies(0);
    __syncthreads();
    multiply_rows<kDim>(queries, keys, [&](i32 i, i32 j, float sum) {
      scores[i * kLine + j] = j <= i ? scale * decay(decays[i] - decays[j]) * sum : 0.0f;
    });
    multiply_rows<kDim>(keys, keys, [&](i32 i, i32 j, float sum) {
      couplings[i * kLine + j] = j < i ? decay(decays[i] - decays[j]) * sum * betas[i] : 0.0f;
    });
    __syncthreads();
    if (warp == 0) invert(couplings, inverse);
    __syncthreads();
    multiply_transposed(product, inverse, scores);
    __syncthreads();
    const Workspace<kDim, kColumns> room{workspace, i64(gridDim.x)};
    multiply_square<kColumns, kThreads>(
        [&](i32 i, i32 j) { return product[i * kLine + j]; }, dy,
        [&](i32 i, i32 column, float first, float second) {
          *reinterpret_cast<float2*>(room.x(at) + i * kColumns + column) = {first, second};
        });
    const float all = decays[kDeltaChunk - 1];
    u8* const record = room.record(at);
    store_keys<DeltaBackwardRecord, kDim, i32(kThreads)>(
        record, keys, [&](i32 i, i32 j) { return inverse[i * kLine + j] * decay(all - decays[j]); });
    if (warp == 0) {
      float* const factors = reinterpret_cast<float*>(record + 2 * DeltaBackwardRecord{kDim}.plane());
      const float before = decay(decays[lane()]);
      factors[lane()] = scale * before, factors[kDeltaChunk + lane()] = -before * betas[lane()];
      if (lane() == 0) factors[DeltaBackwardRecord::kStays] = decay(all);
    }
  }

 private:
  // Each lane has a column of (I + couplings')^-1.
  static void invert(const float* couplings, float* inverse) {
    float column[kDeltaChunk];
#pragma unroll
    for (i32 i = kDeltaChunk - 1; i >= 0; --i) {
      float sum = i == i32(lane()) ? 1.0f : 0.0f;
#pragma unroll
      for (i32 j = i + 1; j < kDeltaChunk; ++j) sum -= couplings[j * kLine + i] * column[j];
      inverse[i * kLine + i32(lane())] = column[i] = sum;
    }
  }

  // to = left right'.
  static void multiply_transposed(float* to, const float* left, const float* right) {
    constexpr i32 kEach = kDeltaChunk * kDeltaChunk / i32(kThreads);
    const i32 i = i32(threadIdx.x) * kEach / kDeltaChunk, first = i32(threadIdx.x) * kEach % kDeltaChunk;
    float sums[kEach] = {};
    for (i32 m = 0; m < kDeltaChunk; ++m)
#pragma unroll
      for (i32 n = 0; n < kEach; ++n) sums[n] += left[i * kLine + m] * right[(first + n) * kLine + m];
#pragma unroll
    for (i32 n = 0; n < kEach; ++n) to[i * kLine + first + n] = sums[n];
  }
};

// Goes through the chunks of a head from the last. Stores x, and the gradients of states after chunks and of the first state.
template <class Config>
struct Kernel {
  static constexpr u32 kThreads = 32 * Config::kWarps;
  static constexpr i32 kDim = Config::kDim, kColumns = Config::kColumns, kPart = 16 * Config::kWarps;
  static constexpr i32 kStages = Config::kStages, kPlane = kDeltaChunk * delta_pitch(kDim);
  static constexpr i32 kStage = delta_backward_stage_bytes(kDim, kPart), kDyPitch = delta_pitch(kPart);
  static constexpr i32 kFactorsAt = 4 * kPlane + kDeltaChunk * kDyPitch;
  static constexpr tile::Budget kBudget = delta_backward_scan_budget(kDim, kPart, kStages);
  static constexpr GatedDeltaRuleBackward kTypes = Config::types();

  static void run(const GatedDeltaRuleBackward& a, const TensorMap*, u8* workspace) {
    constexpr i32 kParts = (kColumns + kPart - 1) / kPart;
    const i32 head = i32(blockIdx.x) / kParts, chunks = delta_chunks(a.q.size[1]);
    const i32 part = i32(blockIdx.x) % kParts * kPart, own = i32(threadIdx.x) / 32 * 16;
    const bool works = part + own < kColumns;
    const Workspace<kDim, kColumns> room{workspace, i64(gridDim.x / kParts) * chunks};
    const i64 first = i64(head) * chunks;
    u8* const stages = arch::dynamic_shared() + kBudget.offset("stages");
    const auto fill = [&](i32 number) {  // in the order of visits
      if (number < chunks)
        begin_stage(stages + number % kStages * kStage, room.record(first + chunks - 1 - number), a,
                    Chunk::of(a, head, chunks - 1 - number), part);
      arch::commit_copies();
    };
    for (i32 number = 0; number < kStages - 1; ++number) fill(number);
    State<kDim, kColumns> state;
    const Chunk begin = Chunk::of(a, head, 0);
    if constexpr (kTypes.dlast.rank > 0)
      state.template load<DType::kF32>(a.dlast, begin.batch, begin.head, works ? part + own : 0);
    else
      state.clear();
    const auto x_of = [&](i32 number) {
      return room.x(first + number) + lane_row() * kColumns + part + own + lane_column();
    };
    ChunkSums prepared;
    const auto load_x = [&](i32 number) {
      each_sum(prepared, [from = x_of(number)](float& value, i32 position, i32 at) {
        value = from[position * kColumns + at];
      });
    };
    if (works) load_x(chunks - 1);
#pragma unroll 1
    for (i32 number = 0; number < chunks; ++number) {
      arch::wait_copies(kStages - 2);
      __syncthreads();  // the stage is there, and all have read the one that is filled next
      fill(number + kStages - 1);
      if (!works) continue;
      const u8* const stage = stages + number % kStages * kStage;
      const i32 chunk = chunks - 1 - number;
      state.store(room.after(first + chunk) + part + own);
      ChunkSums x;
      copy(x, prepared);
      load_x(max(chunk - 1, 0));
      state.template meet<false>(x, stage);
      const float* const factors = reinterpret_cast<const float*>(stage + kFactorsAt);
      each_sum(x, [to = x_of(chunk), factors](float& value, i32 position, i32 at) {
        to[position * kColumns + at] = value;
        value *= factors[kDeltaChunk + lane_row() + position];
      });
      state.decay(factors[DeltaBackwardRecord::kStays]);
      state.add(x, stage + 2 * kPlane);
#pragma unroll
      for (i32 s = 0; s < kDeltaChunk / 16; ++s)
        state.add(dy_of(stage + 4 * kPlane + 16 * s * kDyPitch, own, factors + 16 * s),
                  stage + 3 * kPlane + 16 * s * delta_pitch(kDim));
    }
    if (works) {
      state.each([](float& value, i32, i32) { value = told(value); });
      state.store(reinterpret_cast<float*>(a.ds0.data) + i64(head) * (kDim * kColumns) + part + own);
    }
  }

 private:
  static void begin_stage(u8* stage, const u8* record, const GatedDeltaRuleBackward& a, const Chunk& chunk,
                          i32 part) {
    copy_record<kDim, kThreads, DeltaBackwardRecord>(stage, stage + kFactorsAt, record);
    copy_rows<kDim, kThreads>(stage + 2 * kPlane, a.k, chunk);
    copy_rows<kDim, kThreads>(stage + 3 * kPlane, a.q, chunk);
    copy_rows<kPart, kThreads>(stage + 4 * kPlane, a.dy, chunk, part, kColumns - part);
  }

  // The transpose of 16 rows of dy, each times its factor, for columns [column, column + 16).
  static Left dy_of(const u8* rows, i32 column, const float* factors) {
    u32 words[4];
    const i32 row = i32(lane()) / 16 * 8 + i32(lane()) % 8;
    arch::load_transposed(words, rows + row * kDyPitch + (column + i32(lane()) / 8 % 2 * 8) * 2);
    Left left;
#pragma unroll
    for (i32 i = 0; i < 4; ++i) {
      const float* const of = factors + lane_row() + i / 2 * 8;
      left.set(i, __uint_as_float(words[i] << 16) * of[0], __uint_as_float(words[i] & 0xffff0000u) * of[1]);
    }
    return left;
  }
};

// The gradients of a chunk's rows from the state before it, the gradient of the state after it, errors and x.
template <class Config>
struct Answer {
  static constexpr u32 kThreads = kDeltaThreads;
  static constexpr i32 kDim = Config::kDim, kColumns = Config::kColumns, kWarps = i32(kThreads) / 32;
  static constexpr i32 kPitch = delta_pitch(kDim), kRow = delta_pitch(kColumns);
  static constexpr i32 kPlane = kDeltaChunk * kRow, kSquare = kDeltaChunk * kDeltaSquarePitch;
  static constexpr tile::Budget kBudget = delta_backward_answer_budget(kDim, kColumns);
  static constexpr GatedDeltaRuleBackward kTypes = Config::types();

  // Rows and numbers of the chunk on chip. Those of `written` and `z` are sums of two planes, as are squares: how much dy and z of a
  // position, rows, change what a position wrote, columns, times decays between them.
  struct Chip {
    u8 *queries, *keys, *dy, *written, *z, *of_dy, *of_z;
    float *decays, *betas, *numbers, *sums, *inner;
    float scale;

    explicit Chip(u8* at)
        : queries(at + kBudget.offset("queries")),
          keys(at + kBudget.offset("keys")),
          dy(at + kBudget.offset("dy")),
          written(at + kBudget.offset("written")),
          z(at + kBudget.offset("z")),
          of_dy(at + kBudget.offset("of dy")),
          of_z(at + kBudget.offset("of z")),
          decays(reinterpret_cast<float*>(at + kBudget.offset("decays"))),
          betas(reinterpret_cast<float*>(at + kBudget.offset("betas"))),
          numbers(reinterpret_cast<float*>(at + kBudget.offset("numbers"))),
          sums(reinterpret_cast<float*>(at + kBudget.offset("sums"))),
          inner(reinterpret_cast<float*>(at + kBudget.offset("inner"))) {}
  };
  struct Sums {
    float dq[2][4] = {}, after[2][4] = {}, before[2][4] = {};
  };
  // Rows of a lane, of two halves of two blocks of sums, and what it adds up for them.
  struct Rows {
    float of[2][2] = {}, inner = 0;
  };

  static void run(const GatedDeltaRuleBackward& a, const TensorMap*, u8* workspace) {
    Chip chip(arch::dynamic_shared());
    chip.scale = scale_of(a, kDim);
    const i32 chunks = delta_chunks(a.q.size[1]), at = i32(blockIdx.x), warp = i32(threadIdx.x) / 32;
    const Chunk chunk = Chunk::of(a, at / chunks, at % chunks);
    const Workspace<kDim, kColumns> room{workspace, i64(gridDim.x)};
    copy_rows<kDim, kThreads>(chip.queries, a.q, chunk);
    copy_rows<kDim, kThreads>(chip.keys, a.k, chunk);
    copy_rows<kColumns, kThreads>(chip.dy, a.dy, chunk);
    arch::commit_copies();
    if (warp == 0) store_gates<kTypes.g.dtype, kTypes.beta.dtype>(chip.decays, chip.betas, a, chunk);
    arch::wait_copies(0);
    __syncthreads();
    take_errors(a, chunk, chip, room.x(at));
    __syncthreads();
    multiply_changes(chip);
    __syncthreads();
    const float* const before = reinterpret_cast<const float*>(a.starts.data) + i64(at) * (kDim * kColumns);
    Rows rows;
#pragma unroll 1
    for (i32 n = 8 * warp; n < kDim; n += 8 * kWarps) {
      Sums sums;
      multiply_states(sums, rows, chip, before + n * kColumns, room.after(at) + n * kColumns);
      multiply_chunk(sums, rows, chip, n);
      store(a, chunk, chip, n, sums, rows);
    }
    add_up(a, chunk, chip, rows);
  }

 private:
  // Four threads have a row: they store dv, dbeta, and what is written and z to the chip.
  static void take_errors(const GatedDeltaRuleBackward& a, const Chunk& chunk, const Chip& chip,
                          const float* x) {
    const i32 i = i32(threadIdx.x) / 4;
    const bool has = chunk.has(i);
    const float beta = chip.betas[i];
    float dbeta = 0, known = 0;
#pragma unroll 4
    for (i32 column = i32(threadIdx.x) % 4 * 2; column < kColumns; column += 8) {
      float2 error = {0, 0};
      if (has) error = *reinterpret_cast<const float2*>(chunk.at<4>(a.error, i, column));
      const float2 of = *reinterpret_cast<const float2*>(x + i * kColumns + column);
      const Halves written = Halves::of(beta * error.x, beta * error.y),
                   z = Halves::of(beta * of.x, beta * of.y);
      const i32 place = i * kRow + column * 2;
      *reinterpret_cast<u32*>(chip.written + place) = written.high;
      *reinterpret_cast<u32*>(chip.written + kPlane + place) = written.low;
      *reinterpret_cast<u32*>(chip.z + place) = z.high;
      *reinterpret_cast<u32*>(chip.z + kPlane + place) = z.low;
      dbeta += of.x * error.x + of.y * error.y;
      if (!has) continue;
      const u32 value = *reinterpret_cast<const u32*>(chunk.at<2>(a.v, i, column));
      known += beta * of.x * (__uint_as_float(value << 16) - error.x) +
               beta * of.y * (__uint_as_float(value & 0xffff0000u) - error.y);
      *reinterpret_cast<u32*>(chunk.at<2>(a.dv, i, column)) =
          arch::pack_bf16(told(beta * of.x), told(beta * of.y));
    }
#pragma unroll
    for (i32 s = 1; s < 4; s *= 2)
      dbeta += __shfl_xor_sync(~0u, dbeta, s), known += __shfl_xor_sync(~0u, known, s);
    if (threadIdx.x % 4 != 0) return;
    chip.numbers[i] = known;
    if (has) *number_of(a.dbeta, chunk, i) = told(dbeta);
  }
  static float* number_of(const Tensor& numbers, const Chunk& chunk, i32 i) {
    return reinterpret_cast<float*>(numbers.data) + chunk.batch * numbers.stride[0] +
           i64(chunk.first + i) * numbers.stride[1] + chunk.head * numbers.stride[2];
  }

  // Squares of a warp's quarter.
  static void multiply_changes(const Chip& chip) {
    const i32 warp = i32(threadIdx.x) / 32, row = warp / 2 * 16, column = warp % 2 * 16;
    float of_dy[2][4] = {}, of_z[2][4] = {};
#pragma unroll 2
    for (i32 at = 0; at < kColumns; at += 16) {
      u32 high[4], low[4], dy[4];
      Left z;
      load_right(high, chip.written + column * kRow, kRow, at);
      load_right(low, chip.written + kPlane + column * kRow, kRow, at);
      load_left(dy, chip.dy + row * kRow, kRow, at);
      load_left(z.high, chip.z + row * kRow, kRow, at);
      load_left(z.low, chip.z + kPlane + row * kRow, kRow, at);
#pragma unroll
      for (i32 t = 0; t < 2; ++t) {
        arch::multiply_add<true>(of_dy[t], dy, {low[2 * t], low[2 * t + 1]});
        arch::multiply_add<true>(of_dy[t], dy, {high[2 * t], high[2 * t + 1]});
        add_product(of_z[t], z, {high[2 * t], high[2 * t + 1]}, {low[2 * t], low[2 * t + 1]});
      }
    }
#pragma unroll
    for (i32 t = 0; t < 2; ++t)
#pragma unroll
      for (i32 half = 0; half < 2; ++half) {
        const i32 i = row + lane_column() + 8 * half, j = column + 8 * t + lane_row();
        const auto left = [&](i32 to) { return decay(chip.decays[i] - chip.decays[to]); };
        const auto put = [&](u8* square, float first, float second) {
          const Halves halves = Halves::of(first, second);
          u8* const to = square + i * kDeltaSquarePitch + j * 2;
          *reinterpret_cast<u32*>(to) = halves.high, *reinterpret_cast<u32*>(to + kSquare) = halves.low;
        };
        put(chip.of_dy, j <= i ? chip.scale * left(j) * of_dy[t][2 * half] : 0.0f,
            j + 1 <= i ? chip.scale * left(j + 1) * of_dy[t][2 * half + 1] : 0.0f);
        put(chip.of_z, j < i ? -left(j) * of_z[t][2 * half] : 0.0f,
            j + 1 < i ? -left(j + 1) * of_z[t][2 * half + 1] : 0.0f);
      }
  }

  // Products of rows of the chunk with eight rows of both states, and the inner product of these.
  static void multiply_states(Sums& sums, Rows& rows, const Chip& chip, const float* before,
                              const float* after) {
    const i32 place = lane_column() * kColumns + lane_row();
    float inner = 0;
#pragma unroll 2
    for (i32 at = 0; at < kColumns; at += 16) {
      u32 before_high[2], before_low[2], after_high[2], after_low[2];
#pragma unroll
      for (i32 i = 0; i < 2; ++i) {
        const float2 s = *reinterpret_cast<const float2*>(before + place + at + 8 * i);
        const float2 g = *reinterpret_cast<const float2*>(after + place + at + 8 * i);
        const Halves of_s = Halves::of(s.x, s.y), of_g = Halves::of(g.x, g.y);
        before_high[i] = of_s.high, before_low[i] = of_s.low;
        after_high[i] = of_g.high, after_low[i] = of_g.low;
        inner += s.x * g.x + s.y * g.y;
      }
#pragma unroll
      for (i32 m = 0; m < 2; ++m) {
        u32 dy[4];
        Left written, z;
        load_left(dy, chip.dy + 16 * m * kRow, kRow, at);
        load_left(written.high, chip.written + 16 * m * kRow, kRow, at);
        load_left(written.low, chip.written + kPlane + 16 * m * kRow, kRow, at);
        load_left(z.high, chip.z + 16 * m * kRow, kRow, at);
        load_left(z.low, chip.z + kPlane + 16 * m * kRow, kRow, at);
        arch::multiply_add<true>(sums.dq[m], dy, before_low);
        arch::multiply_add<true>(sums.dq[m], dy, before_high);
        add_product(sums.after[m], written, after_high, after_low);
        add_product(sums.before[m], z, before_high, before_low);
      }
    }
    rows.inner += inner * decay(chip.decays[kDeltaChunk - 1]);
  }

  // Adds what rows of the chunk are to one another, for columns [n, n + 8).
  static void multiply_chunk(Sums& sums, Rows& rows, const Chip& chip, i32 n) {
    const float all = chip.decays[kDeltaChunk - 1];
    u32 keys[4], queries[4];
    arch::load_transposed(keys, chip.keys + i32(lane()) * kPitch + n * 2);
    arch::load_transposed(queries, chip.queries + i32(lane()) * kPitch + n * 2);
#pragma unroll
    for (i32 m = 0; m < 2; ++m) {
#pragma unroll
      for (i32 i = 0; i < 4; ++i) {
        const i32 row = 16 * m + lane_column() + i / 2 * 8;
        const float decay_before = decay(chip.decays[row]);
        sums.dq[m][i] *= chip.scale * decay_before;
        sums.after[m][i] *= decay(all - chip.decays[row]);
        rows.inner += sums.after[m][i] * element(chip.keys, row, n + lane_row() + i % 2);
        sums.after[m][i] -= sums.before[m][i] * decay_before;
      }
#pragma unroll
      for (i32 s = 0; s < 2; ++s) {
        const u32 key[2] = {keys[2 * s], keys[2 * s + 1]}, query[2] = {queries[2 * s], queries[2 * s + 1]};
        add_product(sums.dq[m], square(chip.of_dy, m, s), key);
        add_product(sums.after[m], transposed(chip.of_dy, m, s), query);
        add_product(sums.after[m], square(chip.of_z, m, s), key);
        add_product(sums.after[m], transposed(chip.of_z, m, s), key);
      }
    }
  }
  static float element(const u8* rows, i32 row, i32 column) {
    return __uint_as_float(u32(*reinterpret_cast<const u16*>(rows + row * kPitch + column * 2)) << 16);
  }
  // A block [16, 16] of a square, and of its transpose.
  static Left square(const u8* from, i32 m, i32 s) {
    Left left;
    load_left(left.high, from + 16 * m * kDeltaSquarePitch, kDeltaSquarePitch, 16 * s);
    load_left(left.low, from + kSquare + 16 * m * kDeltaSquarePitch, kDeltaSquarePitch, 16 * s);
    return left;
  }
  static Left transposed(const u8* from, i32 m, i32 s) {
    const i32 row = 16 * s + i32(lane()) / 16 * 8 + i32(lane()) % 8,
              column = 16 * m + i32(lane()) / 8 % 2 * 8;
    Left left;
    arch::load_transposed(left.high, from + row * kDeltaSquarePitch + column * 2);
    arch::load_transposed(left.low, from + kSquare + row * kDeltaSquarePitch + column * 2);
    return left;
  }

  // Stores columns [n, n + 8) of dq and dk, and adds up their products with q and k.
  static void store(const GatedDeltaRuleBackward& a, const Chunk& chunk, const Chip& chip, i32 n,
                    const Sums& sums, Rows& rows) {
#pragma unroll
    for (i32 m = 0; m < 2; ++m)
#pragma unroll
      for (i32 half = 0; half < 2; ++half) {
        const i32 row = 16 * m + lane_column() + 8 * half, column = n + lane_row();
        const float* const dq = sums.dq[m] + 2 * half;
        const float* const dk = sums.after[m] + 2 * half;
        float sum = 0;
#pragma unroll
        for (i32 i = 0; i < 2; ++i)
          sum += dq[i] * element(chip.queries, row, column + i) - dk[i] * element(chip.keys, row, column + i);
        rows.of[m][half] += sum;
        if (!chunk.has(row)) continue;
        *reinterpret_cast<u32*>(chunk.at<2>(a.dq, row, column)) = arch::pack_bf16(told(dq[0]), told(dq[1]));
        *reinterpret_cast<u32*>(chunk.at<2>(a.dk, row, column)) = arch::pack_bf16(told(dk[0]), told(dk[1]));
      }
  }

  // dg: by the inner product of the state and its gradient, which each row changes by products of vectors.
  static void add_up(const GatedDeltaRuleBackward& a, const Chunk& chunk, const Chip& chip, Rows& rows) {
    const i32 warp = i32(threadIdx.x) / 32;
#pragma unroll
    for (i32 m = 0; m < 2; ++m)
#pragma unroll
      for (i32 half = 0; half < 2; ++half) {
        float& sum = rows.of[m][half];
#pragma unroll
        for (i32 s = 1; s < 4; s *= 2) sum += __shfl_xor_sync(~0u, sum, s);
        if (lane() % 4 == 0) chip.sums[warp * kDeltaChunk + 16 * m + lane_column() + 8 * half] = sum;
      }
#pragma unroll
    for (i32 s = 1; s < 32; s *= 2) rows.inner += __shfl_xor_sync(~0u, rows.inner, s);
    if (lane() == 0) chip.inner[warp] = rows.inner;
    __syncthreads();
    if (warp > 0) return;
    const i32 i = i32(lane());
    float sum = -2.0f * chip.numbers[i], inner = 0;
#pragma unroll
    for (i32 w = 0; w < kWarps; ++w) sum += chip.sums[w * kDeltaChunk + i], inner += chip.inner[w];
#pragma unroll
    for (i32 s = 1; s < 32; s *= 2) {
      const float after = __shfl_sync(~0u, sum, min(i + s, 31));
      if (i + s < 32) sum += after;
    }
    if (chunk.has(i)) *number_of(a.dg, chunk, i) = told(sum + inner);
  }
};

}  // namespace heddle::device::gated_delta_rule_backward
