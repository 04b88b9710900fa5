// Helpers for x_cases.cpp: an op's list of cases, read by the tests of every backend and by benchmarks.
#pragma once

#include <utility>
#include <vector>

#include "heddle/ir/rules.h"
#include "heddle/ir/step.h"

namespace heddle {

// An input of a case, by shape and dtype. The harness gives it memory and values.
inline Tensor input(DType dtype, Sizes shape) {
  return dense(dtype, shape);
}

inline Weight weight_input(DType dtype, i32 rows, i32 cols) {
  Weight weight;
  weight.data = dense(dtype, {rows, cols});
  weight.interleave = dtype == DType::kF32 ? 1 : 2;
  return weight;
}

// Bound of the error, relative to 1 + |value|, after storing in `dtype` and `steps` roundings in f32.
inline double rounding_bound(DType dtype, double steps) {
  const int bits = is_float(dtype) ? info_of(dtype).mantissa : info_of(DType::kF32).mantissa;
  return 0.5 / (1 << bits) + steps * 0x1p-23;
}

// Like rounding_bound, but for values near a border of `dtype`: the reference is rounded too, and the two may
// be rounded to different sides, a whole unit apart.
inline double unit_bound(DType dtype, double steps) {
  return 2 * rounding_bound(dtype, steps);
}

// A step record for cases: sequences with `start` positions in their pages and `rows` new rows. The pages are
// shuffled; the last row of each sequence is wanted.
struct StepExample {
  struct Sequence {
    i32 start, rows;
  };
  std::vector<Sequence> sequences;
  i32 page_size = 16;
  i32 vocab = 64;

  StepShape shape() const;
  i32 rows() const;
  i32 wanted() const { return i32(sequences.size()); }
  i32 pages() const;  // pages of the pool: all that the tables name, plus two
  // Places in memory of recurrent layers. The sequences have the last ones.
  i32 slots() const { return i32(sequences.size()) + 1; }
  Tensor host() const { return dense(DType::kU8, {i32(StepHost::bytes(shape()))}); }
  Tensor state() const { return dense(DType::kU8, {i32(StepDevice::bytes(shape()))}); }
  StepHost& fill_host(std::byte* bytes) const;
  StepDevice& fill_state(std::byte* bytes) const;  // tokens are 0, 7, 14, ... modulo vocab
};

template <class Args>
Case make_case(const Args& args, double bound) {
  Case result;
  result.args.resize(sizeof(Args));
  new (result.args.data()) Args(args);
  result.bound = bound;
  return result;
}

}  // namespace heddle
