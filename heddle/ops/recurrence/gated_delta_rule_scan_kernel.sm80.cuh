// The scan of gated_delta_rule's whole kernels: a state goes through the chunks of a head, in segments if there are many.
#pragma once

#include "heddle/ops/recurrence/delta_state_kernel.sm80.cuh"
#include "heddle/ops/recurrence/gated_delta_rule.h"

namespace heddle::device::gated_delta_rule {

using namespace delta;

struct KernelConfig {
  static constexpr i32 kKernel = 1;
  static constexpr i32 kDim = 128;      // elements of a key
  static constexpr i32 kColumns = 128;  // elements of a value
  static constexpr i32 kWarps = 4;      // a scan has, each with 16 columns of the state
};

// The transpose of errors, or of prepared values, which lie where errors will. What is loaded after the last position is not used.
inline void load_values(ChunkSums& to, const GatedDeltaRule& a, const Chunk& chunk, i32 column) {
  const float* const from = reinterpret_cast<const float*>(chunk.at<4>(a.error, 0, column + lane_column()));
  const i32 most = a.q.size[1] - chunk.first - 1, stride = i32(a.error.stride[1]);
  each_sum(to, [&](float& value, i32 position, i32 at) {
    value = from[min(lane_row() + position, most) * stride + at];
  });
}
inline void store_errors(const GatedDeltaRule& a, const Chunk& chunk, i32 column, ChunkSums& errors) {
  float* const to = reinterpret_cast<float*>(chunk.at<4>(a.error, lane_row(), column + lane_column()));
  const i32 left = a.q.size[1] - chunk.first - lane_row(), stride = i32(a.error.stride[1]);
  each_sum(errors, [&](float& value, i32 position, i32 at) {
    value = told(value);
    if (position < left) to[position * stride + at] = value;
  });
}

// Places of a scan: heads, chunks, segments.
template <class Config>
struct Scan {
  static constexpr i32 kDim = Config::kDim, kColumns = Config::kColumns, kPart = 16 * Config::kWarps;
  static constexpr i32 kParts = (kColumns + kPart - 1) / kPart, kMatrixParts = (kDim + kPart - 1) / kPart;
  static constexpr u32 kThreads = 32 * Config::kWarps;
  static constexpr i32 kPlane = kDeltaChunk * delta_pitch(kDim), kStage = delta_stage_bytes(kDim);
  static constexpr tile::Budget kBudget = delta_scan_budget(kDim);
  static constexpr GatedDeltaRule kTypes = Config::types();

  const GatedDeltaRule& a;
  u8* workspace;
  i32 chunks;
  DeltaSegments cut;

  Scan(const GatedDeltaRule& args, u8* memory)
      : a(args),
        workspace(memory),
        chunks(delta_chunks(args.q.size[1])),
        cut(DeltaSegments::of(i64(args.q.size[0]) * args.q.size[2] * kParts, chunks)) {}

  i32 heads() const { return a.q.size[0] * a.q.size[2]; }
  const u8* records(i32 head) const { return workspace + i64(head) * chunks * DeltaRecord{kDim}.bytes(); }
  // The end of a segment that begins with no state, [kDim, kColumns]; and its matrix, [kDim, kDim].
  float* end(i32 head, i32 segment) const {
    u8* const first = workspace + i64(heads()) * chunks * DeltaRecord{kDim}.bytes();
    return reinterpret_cast<float*>(first) +
           (i64(head) * cut.count + segment) * delta_segment_floats(kDim, kColumns);
  }
  float* matrix(i32 head, i32 segment) const { return end(head, segment) + kDim * kColumns; }
  // The state before a chunk.
  float* start(i32 head, i32 chunk) const {
    return reinterpret_cast<float*>(a.starts.data) + (i64(head) * chunks + chunk) * (kDim * kColumns);
  }
  float* last(i32 head) const {
    return reinterpret_cast<float*>(a.last.data) + i64(head) * (kDim * kColumns);
  }

  template <class State>
  void begin(State& state, i32 head, i32 column) const {
    if constexpr (kTypes.s0.rank > 0)
      state.template load<kTypes.s0.dtype>(a.s0, head / a.q.size[2], head % a.q.size[2], column);
    else
      state.clear();
  }

  // Takes a warp's columns of a state through the chunks of a segment. All threads of the CTA call it; those that do not work copy alone.
  // Without kHasValues all values are zeros. kKeeps stores the states before chunks, and errors.
  template <bool kHasValues, bool kKeeps, class State>
  void pass(State& state, i32 head, i32 segment, i32 column, bool works) const {
    const i32 first = segment * cut.chunks, stop = min(first + cut.chunks, chunks);
    u8* const stages = arch::dynamic_shared() + kBudget.offset("stages");
    const auto fill = [&](i32 number) {
      if (number < stop) {
        u8* const stage = stages + number % kDeltaStages * kStage;
        copy_record<kDim, kThreads, DeltaRecord>(stage, stage + 3 * kPlane,
                                                 records(head) + i64(number) * DeltaRecord{kDim}.bytes());
        copy_rows<kDim, kThreads>(stage + 2 * kPlane, a.k, Chunk::of(a, head, number));
      }
      arch::commit_copies();
    };
    for (i32 ahead = 0; ahead < kDeltaStages - 1; ++ahead) fill(first + ahead);
    ChunkSums prepared = {};
    if (kHasValues && works) load_values(prepared, a, Chunk::of(a, head, first), column);
#pragma unroll 1
    for (i32 number = first; number < stop; ++number) {
      arch::wait_copies(kDeltaStages - 2);
      __syncthreads();  // the stage is there, and all have read the one that is filled next
      fill(number + kDeltaStages - 1);
      if (!works) continue;
      const u8* const stage = stages + number % kDeltaStages * kStage;
      if constexpr (kKeeps) state.store(start(head, number) + column);
      ChunkSums errors;
      copy(errors, prepared);
      if constexpr (kHasValues)
        load_values(prepared, a, Chunk::of(a, head, min(number + 1, stop - 1)), column);
      state.template meet<true>(errors, stage);
      if constexpr (kKeeps) store_errors(a, Chunk::of(a, head, number), column, errors);
      const float* const factors = reinterpret_cast<const float*>(stage + 3 * kPlane);
      each_sum(errors, [&](float& value, i32 position, i32) { value *= factors[lane_row() + position]; });
      state.decay(factors[DeltaRecord::kStays]);
      state.add(errors, stage + 2 * kPlane);
    }
  }
};

// Finds the end and the matrix of each segment but the last. The first begins with s0, and needs no matrix.
template <class Config>
struct Segments : Scan<Config> {
  using Of = Scan<Config>;

  static void run(const GatedDeltaRule& a, const TensorMap*, u8* workspace) {
    constexpr i32 kAll = Of::kParts + Of::kMatrixParts;
    const Of scan(a, workspace);
    const i32 at = i32(blockIdx.x) / kAll, part = i32(blockIdx.x) % kAll;
    const i32 head = at / (scan.cut.count - 1), segment = at % (scan.cut.count - 1);
    const bool of_matrix = part >= Of::kParts;
    const i32 column = (of_matrix ? part - Of::kParts : part) * Of::kPart + i32(threadIdx.x) / 32 * 16;
    if (of_matrix) {
      if (segment == 0) return;
      const bool works = column < Of::kDim;
      State<Of::kDim, Of::kDim> state;
      state.set_identity(column);
      scan.template pass<false, false>(state, head, segment, column, works);
      if (works) state.store(scan.matrix(head, segment) + column);
    } else {
      const bool works = column < Of::kColumns;
      State<Of::kDim, Of::kColumns> state;
      if (segment == 0)
        scan.begin(state, head, works ? column : 0);
      else
        state.clear();
      scan.template pass<true, false>(state, head, segment, column, works);
      if (works) state.store(scan.end(head, segment) + column);
    }
  }
};

// Stores the states that segments begin with to `starts`. A thread has a row of four columns.
template <class Config>
struct Join {
  static constexpr u32 kThreads = kDeltaThreads;
  static constexpr i32 kDim = Config::kDim, kColumns = Config::kColumns;
  static constexpr tile::Budget kBudget = delta_join_budget(kDim);

  static void run(const GatedDeltaRule& a, const TensorMap*, u8* workspace) {
    const Scan<Config> scan(a, workspace);
    float4* const state = reinterpret_cast<float4*>(arch::dynamic_shared() + kBudget.offset("state"));
    const i32 head = i32(blockIdx.x) / (kColumns / 4), column = i32(blockIdx.x) % (kColumns / 4) * 4;
    const i32 row = i32(threadIdx.x);
    const bool works = row < kDim;
    for (i32 segment = 0; segment + 1 < scan.cut.count; ++segment) {
      float4 sum = {};
      if (works) {
        sum = *reinterpret_cast<const float4*>(scan.end(head, segment) + row * kColumns + column);
        if (segment > 0) add_product(sum, scan.matrix(head, segment) + row * kDim, state);
      }
      __syncthreads();  // all have read the state before
      if (works) {
        state[row] = sum;
        *reinterpret_cast<float4*>(scan.start(head, (segment + 1) * scan.cut.chunks) + row * kColumns +
                                   column) = sum;
      }
      __syncthreads();
    }
  }

 private:
  static void add_product(float4& sum, const float* matrix, const float4* state) {
#pragma unroll 4
    for (i32 i = 0; i < kDim; i += 4) {
      const float4 words = *reinterpret_cast<const float4*>(matrix + i);
      const float by[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
      for (i32 k = 0; k < 4; ++k) {
        const float4 of = state[i + k];
        sum.x += by[k] * of.x, sum.y += by[k] * of.y, sum.z += by[k] * of.z, sum.w += by[k] * of.w;
      }
    }
  }
};

// Goes through the chunks with 16 columns of the state a warp. Stores the states before chunks, errors and the last state.
template <class Config>
struct Kernel : Scan<Config> {
  using Of = Scan<Config>;

  static void run(const GatedDeltaRule& a, const TensorMap*, u8* workspace) {
    const Of scan(a, workspace);
    const i32 at = i32(blockIdx.x) / Of::kParts, head = at / scan.cut.count, segment = at % scan.cut.count;
    const i32 column = i32(blockIdx.x) % Of::kParts * Of::kPart + i32(threadIdx.x) / 32 * 16;
    const bool works = column < Of::kColumns;
    State<Of::kDim, Of::kColumns> state;
    if (segment == 0)
      scan.begin(state, head, works ? column : 0);
    else
      state.load(scan.start(head, segment * scan.cut.chunks) + (works ? column : 0));
    scan.template pass<true, true>(state, head, segment, column, works);
    if (works && segment + 1 == scan.cut.count) state.store(scan.last(head) + column);
  }
};

}  // namespace heddle::device::gated_delta_rule
