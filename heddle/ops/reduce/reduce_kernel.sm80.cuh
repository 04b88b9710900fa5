// The sum, maximum or mean of each row, read once. Kernel is the fast one; the others are steps towards it (docs/kernels.md).
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/row_share.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/reduce/reduce.h"

namespace heddle::device::reduce {

struct KernelConfig {
  static constexpr u32 kThreads = 256, kRowThreads = 256;
  static constexpr i32 kWords = 4, kKind = kReduceSum, kShare = kVec8;
};

using device::combine, device::identity;

template <bool kOfMax>
struct OpOf {
  using Type = Sum;
};
template <>
struct OpOf<true> {
  using Type = Max;
};

template <class Config>
struct Types {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr DType kIn = Config::types().x.dtype, kOut = Config::types().y.dtype;
  using Op = typename OpOf<Config::kKind == kReduceMax>::Type;

  static void store(const Reduce& a, i32 row, float all) {
    store_element(kOut, a.y.data, row, Config::kKind == kReduceMean ? all / float(a.x.size[1]) : all);
  }
};

// A thread has a row. Neighbouring threads read elements that lie a row apart, so each word of memory comes for one element.
template <class Config>
struct NaiveKernel : Types<Config> {
  using T = Types<Config>;
  using T::kThreads, T::kIn;
  using typename T::Op;

  static void run(const Reduce& a, const TensorMap*, u8*) {
    const i32 row = i32(blockIdx.x * kThreads + threadIdx.x);
    if (row >= a.x.size[0]) return;
    float all = identity(Op());
    for (i32 i = 0; i < a.x.size[1]; ++i) all = combine(Op(), all, load_element(kIn, row_of(a.x, row), i));
    T::store(a, row, all);
  }
};

// A CTA has a row. Neighbouring threads read neighbouring elements, and what they have is joined by halves in shared memory, with a
// barrier for each.
template <class Config>
struct ImprovedKernel : Types<Config> {
  using T = Types<Config>;
  using T::kThreads, T::kIn;
  using typename T::Op;

  static void run(const Reduce& a, const TensorMap*, u8*) {
    __shared__ float chip[kThreads];
    const i32 row = i32(blockIdx.x), thread = i32(threadIdx.x);
    float mine = identity(Op());
    for (i32 i = thread; i < a.x.size[1]; i += i32(kThreads))
      mine = combine(Op(), mine, load_element(kIn, row_of(a.x, row), i));
    chip[thread] = mine;
    for (i32 half = i32(kThreads) / 2; half > 0; half /= 2) {
      __syncthreads();
      if (thread < half) chip[thread] = combine(Op(), chip[thread], chip[thread + half]);
    }
    if (thread == 0) T::store(a, row, chip[0]);
  }
};

// A warp or a CTA has a row: a thread reads words of 16 bytes, several at once, and adds them in registers; warps join by shuffles,
// and a CTA has one barrier.
template <class Config, u32 kRowThreads = Config::kRowThreads>
struct Kernel : Types<Config> {
  using T = Types<Config>;
  using T::kThreads, T::kIn;
  using typename T::Op;
  static constexpr i32 kWords = Config::kWords;
  using Team = RowTeam<kThreads, kRowThreads>;
  using Row = RowShare<Team, Config::kShare>;

  static void run(const Reduce& a, const TensorMap*, u8*) {
    const i32 row = Team::row(), columns = Team::elements(a.x), step = 8 * kWords * i32(kRowThreads);
    const u8* const x = row_of(a.x, row);
    float mine = identity(Op());
#pragma unroll 1
    for (i32 begin = 0; begin < columns; begin += step) {
      const u8* const from = x + i64(begin) * size_of(kIn);
      typename Row::template Word<kIn> values[kWords];
      Row::template each<kWords>(columns - begin,
                                 [&](i32 n, i32 at) { values[n].load(from, at, columns - begin); });
      Row::template each<kWords>(columns - begin, [&](i32 n, i32) {
        float eight[8];
#pragma unroll
        for (i32 i = 0; i < 8; ++i) eight[i] = values[n].has(i) ? values[n].get(i) : identity(Op());
#pragma unroll
        for (i32 half = 4; half > 0; half /= 2)
#pragma unroll
          for (i32 i = 0; i < half; ++i) eight[i] = combine(Op(), eight[i], eight[i + half]);
        mine = combine(Op(), mine, eight[0]);
      });
    }
    const float all = Team::reduce(Op(), mine);
    if (Team::thread() == 0 && columns > 0) T::store(a, row, all);
  }
};

template <class Config>
struct LongKernel : Kernel<Config, Config::kThreads> {};

}  // namespace heddle::device::reduce
