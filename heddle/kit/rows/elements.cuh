// A function of values, over all elements of matrices.
#pragma once

#include "heddle/kit/rows/row_share.cuh"
#include "heddle/kit/rows/stretch.cuh"

namespace heddle::device {

// y = f(x...) for each element. What Config::kFlat says is known when the kernel is compiled, for a thread with few elements takes
// long to find out. Elements after the last eight of all are the last CTA's.
template <class Config, DType kY, DType... kX, class F>
inline void map_elements(F&& f, Typed<kY> y, Typed<kX>... x) {
  constexpr u32 kThreads = Config::kThreads;
  constexpr i32 kWords = Config::kWords;
  constexpr bool kFlat = Config::kFlat != 0, kHasF32 = kY == DType::kF32 || ((kX == DType::kF32) || ...);
  using Row = RowShare<RowTeam<kThreads, kThreads>, kHasF32 ? kSplitVec8 : kVec8>;
  using Y = typename Row::template Word<kY>;
  const Stretch stretch = Stretch::of_cta<kFlat>(kWords * kThreads, y.tensor);
  const i32 count = stretch.elements();
  const auto map = [&](auto... in) {
    Row::template each<kWords>(count, [&](i32 n, i32 at) { (in.words[n].load(in.from, at, count), ...); });
    Row::template each<kWords>(count, [&](i32 n, i32 at) {
      Y::of([&](i32 i) { return f(in.words[n].get(i)...); }).store(stretch.place(y), at, count);
    });
  };
  map(PartWords<typename Row::template Word<kX>, kWords>{stretch.place(x)}...);
  if constexpr (kFlat) {
    const u32 rest = u32(y.tensor.size[0]) * u32(y.tensor.size[1]) % 8;
    if (threadIdx.x < rest && blockIdx.x == gridDim.x - 1) {
      const i64 at = i64(y.tensor.size[0]) * y.tensor.size[1] - rest + threadIdx.x;
      *Single<kY>::at(y.tensor.data, at) = Single<kY>::encode(
          f(Single<kX>::decode(*Single<kX>::at(static_cast<const u8*>(x.tensor.data), at))...));
    }
  }
}

}  // namespace heddle::device
