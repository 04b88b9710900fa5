// Matrices whose elements are worked on one by one, cut into stretches (row_kernel.h plans them).
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle::device {

// A tensor of elements of this type.
template <DType kType>
struct Typed {
  const Tensor& tensor;
};

// The place of a CTA in matrices [rows, columns] whose elements are worked on one by one.
struct Stretch {
  i32 row;
  i64 begin, end;  // eights of the row

  // Cuts all rows as one, where they lie end to end (kit/rows/row_kernel.cpp says so). A thread with few elements would take long to find out.
  static Stretch of_all(i64 each, const Tensor& tensor) {
    const i64 eights = i64(tensor.size[0]) * tensor.size[1] / 8, begin = i64(blockIdx.x) * each;
    return {0, begin, begin + each < eights ? begin + each : eights};
  }
  template <bool kFlat>
  static Stretch of_cta(i64 each, const Tensor& tensor) {
    if constexpr (kFlat)
      return of_all(each, tensor);
    else
      return of_row(each, tensor);
  }
  // Cuts rows one by one.
  static Stretch of_row(i64 each, const Tensor& tensor) {
    const i64 eights = tensor.size[1] / 8;
    const u32 pieces = u32((eights + each - 1) / each);
    const i64 begin = i64(blockIdx.x % pieces) * each;
    return {i32(blockIdx.x / pieces), begin, begin + each < eights ? begin + each : eights};
  }
  i32 elements() const { return 8 * i32(end - begin); }
  template <DType kType>
  u8* place(const Typed<kType>& matrix) const {
    return matrix.tensor.data + (i64(row) * matrix.tensor.stride[0] + 8 * begin) * size_of(kType);
  }
  // use(at, load(at)) for the stretch: all loads, then between(), then the uses.
  template <u32 kThreads, i32 kWords, class Load, class Between, class Use>
  void walk(Load&& load, Between&& between, Use&& use) const {
    decltype(load(begin)) values[kWords];
#pragma unroll
    for (i32 n = 0; n < kWords; ++n)
      if (const i64 at = begin + threadIdx.x + n * i64(kThreads); at < end) values[n] = load(at);
    between();
#pragma unroll
    for (i32 n = 0; n < kWords; ++n)
      if (const i64 at = begin + threadIdx.x + n * i64(kThreads); at < end) use(at, values[n]);
  }
  template <u32 kThreads, i32 kWords, class Load, class Use>
  void walk(Load&& load, Use&& use) const {
    walk<kThreads, kWords>(
        load, [] {}, use);
  }
};

}  // namespace heddle::device
