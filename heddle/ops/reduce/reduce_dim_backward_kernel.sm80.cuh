// dx of a sum or a mean: each word of it from dy alone. Of a maximum: two launches find the largest elements (over_rows.cuh), and one
// writes dx. dx is dense.
#pragma once

#include "heddle/kit/arch/cluster.cuh"
#include "heddle/kit/arch/memory.cuh"
#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/arch/on_chip.cuh"
#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/row_share.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/reduce/reduce_dim_backward.h"

namespace heddle::device::reduce_dim_backward {

#include "heddle/ops/reduce/over_rows.cuh"

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = 4, kVector = 8, kLines = 0, kSplit = 1, kShort = 0, kFew = 0, kCluster = 1,
                       kGaps = kNoGaps, kKind = kReduceSum;
};

template <DType kType>
inline void read_eight(const u8* data, i64 at, i64 total, float (&values)[8]) {
  if (at + 8 <= total) {
    Vec8<kType> word;
    word.load(data, at / 8);
#pragma unroll
    for (i32 i = 0; i < 8; ++i) values[i] = word.get(i);
    return;
  }
#pragma unroll
  for (i32 i = 0; i < 8; ++i) values[i] = at + i < total ? load_element(kType, data, at + i) : 0.0f;
}

template <DType kType>
inline void write_eight(u8* data, i64 at, i64 total, const float (&values)[8]) {
  if (at + 8 <= total) return Vec8<kType>::of([&](i32 i) { return values[i]; }).store(data, at / 8);
#pragma unroll
  for (i32 i = 0; i < 8; ++i)
    if (at + i < total) store_element(kType, data, at + i, values[i]);
}

#include "heddle/ops/reduce/ties_gradient.cuh"

// The largest elements of each output, or of parts of its rows. The workspace has those of outputs, then those of parts.
template <class Config>
struct Most {
  static constexpr u32 kThreads = Config::kThreads;
  using Work = Reduction<Config, kReduceTies, Config::types().x.dtype>;
  static constexpr u32 kCtas = Work::kCtas;

  static Rows rows_of(const ReduceDimBackward& a) {
    return {a.x.data, a.x.size[0], a.x.size[1], a.x.size[2], a.x.stride[0], a.x.stride[1]};
  }
  static AllOutputs outputs(const ReduceDimBackward& a, u8* workspace) {
    return {reinterpret_cast<Ties*>(workspace), a.x.size[2]};
  }
  static Ties* parts(const ReduceDimBackward& a, u8* workspace) {
    return reinterpret_cast<Ties*>(workspace) + i64(a.x.size[0]) * a.x.size[2];
  }
  static void run(const ReduceDimBackward& a, const TensorMap*, u8* workspace) {
    Work::run(rows_of(a), outputs(a, workspace), parts(a, workspace));
  }
};

template <class Config>
struct MostOfParts : Most<Config> {
  using First = Most<Config>;
  static constexpr u32 kCtas = 1;
  static void run(const ReduceDimBackward& a, const TensorMap*, u8* workspace) {
    First::Work::finish(First::rows_of(a), First::outputs(a, workspace), First::parts(a, workspace));
  }
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kIn = Config::types().dy.dtype, kOut = Config::types().dx.dtype;

  static void run(const ReduceDimBackward& a, const TensorMap*, u8* workspace) {
    if constexpr (Config::kKind == kReduceMax)
      MaxGradient<Config>::run(a, reinterpret_cast<const Ties*>(workspace));
    else
      share_evenly(a);
  }

 private:
  static void share_evenly(const ReduceDimBackward& a) {
    const i32 columns = a.dx.size[2];
    const i64 line = i64(a.dx.size[1]) * columns, total = a.dx.size[0] * line;
    const i64 first = i64(blockIdx.x) * kThreads * kWords * 8;
    const i64 first_line = first / line, in_line = first % line;
    const i32 first_column = i32(in_line % columns);
    const float scale = Config::kKind == kReduceMean ? 1.0f / float(a.dx.size[1]) : 1.0f;
    const bool in_words = columns % 8 == 0 && a.dy.stride[0] % 8 == 0;
#pragma unroll
    for (i32 n = 0; n < kWords; ++n) {
      const u32 on = (threadIdx.x + u32(n) * kThreads) * 8;
      if (first + on >= total) return;
      Place place{first_line, in_line + on, i32((u32(first_column) + on) % u32(columns))};
      place.go_on(line);
      float values[8];
      if (in_words) {
        Vec8<kIn> word;
        word.load_kept(a.dy.data + place.line * a.dy.stride[0] * size_of(kIn), place.column / 8);
#pragma unroll
        for (i32 i = 0; i < 8; ++i) values[i] = word.get(i) * scale;
      } else {
        read(a.dy, place, line, columns, values);
#pragma unroll
        for (float& value : values) value *= scale;
      }
      write_eight<kOut>(a.dx.data, first + on, total, values);
    }
  }

  struct Place {
    i64 line, inside;  // a line has M * D elements
    i32 column;

    // Takes it to a later line where it is past its own.
    void go_on(i64 length) {
      constexpr i64 kShort = 1 << 30;
      if (inside < length) return;
      const i64 lines = length < kShort ? u32(inside) / u32(length) : 1;
      line += lines, inside -= lines * length;
    }
  };

  static void read(const Tensor& dy, Place place, i64 length, i32 columns, float (&values)[8]) {
#pragma unroll
    for (i32 i = 0; i < 8; ++i) {
      const bool is_there = place.line < dy.size[0];
      values[i] = is_there ? load_element(kIn, dy.data, place.line * dy.stride[0] + place.column) : 0.0f;
      if (++place.column == columns) place.column = 0;
      if (++place.inside == length) ++place.line, place.inside = 0;
    }
  }
};

}  // namespace heddle::device::reduce_dim_backward
