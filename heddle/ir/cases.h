// Helpers for x_cases.cpp: an op's list of cases, read by the tests of every backend and by benchmarks.
#pragma once

#include <utility>

#include "heddle/ir/rules.h"

namespace heddle {

// An input of a case: shape and dtype; the harness gives it memory and values.
inline Tensor input(DType dtype, std::vector<i32> shape) {
  return dense(dtype, std::move(shape));
}

inline Weight weight_input(DType dtype, i32 rows, i32 cols) {
  Weight weight;
  weight.data = dense(dtype, {rows, cols});
  weight.interleave = dtype == DType::kF32 ? 1 : 2;
  return weight;
}

// Error that storing in `dtype` and `steps` roundings in f32 may make, relative to 1 + |value|.
inline double rounding_bound(DType dtype, double steps) {
  double store = dtype == DType::kBf16 ? 0x1p-8 : dtype == DType::kF16 ? 0x1p-11 : 0x1p-24;
  return store + steps * 0x1p-23;
}

template <class Args>
Case make_case(const Args& args, double bound) {
  Case result;
  result.args.resize(sizeof(Args));
  new (result.args.data()) Args(args);
  result.bound = bound;
  return result;
}

}  // namespace heddle
