// Cases of gated_delta_rule and of its gradient.
#pragma once

#include <cmath>

#include "heddle/ir/cases.h"
#include "heddle/ops/recurrence/delta_chunks.h"

namespace heddle {

struct DeltaExample {
  i32 batch, positions, heads, dim, columns;
  bool begins;
};
constexpr DeltaExample kDeltaExamples[] = {{2, 5, 2, 8, 9, true},
                                           {1, 1, 1, 1, 1, false},
                                           {1, 70, 2, 24, 40, true},
                                           {1, 33, 1, 64, 32, false},
                                           {1, 70, 2, 32, 80, true}};

// Keys of length 1 or less, betas up to 1, decays up to 1: states stay small.
template <class Args>
void tame_delta(std::byte* bytes, Values& values) {
  const auto& a = as<Args>(bytes);
  auto k = values.read(a.k), g = values.read(a.g), beta = values.read(a.beta);
  for (double& value : k) value /= std::sqrt(double(a.k.size[3]));
  for (double& value : g) value = -std::abs(value) / 4;
  for (double& value : beta) value = std::abs(value);
  values.write(a.k, k);
  values.write(a.g, g);
  values.write(a.beta, beta);
}

template <class Args>
Args delta_inputs(const DeltaExample& e, DType type) {
  Args a;
  a.q = a.k = input(type, {e.batch, e.positions, e.heads, e.dim});
  a.v = input(type, {e.batch, e.positions, e.heads, e.columns});
  a.g = a.beta = input(DType::kF32, {e.batch, e.positions, e.heads});
  if (e.begins) a.s0 = input(DType::kF32, {e.batch, e.heads, e.dim, e.columns});
  return a;
}

}  // namespace heddle
