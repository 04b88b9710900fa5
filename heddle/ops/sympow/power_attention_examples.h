// Cases of power attention and of its gradient: shapes, and the bounds of their errors.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "heddle/ir/cases.h"

namespace heddle {

struct PowerAttentionExample {
  i32 batch, rows, heads, dim, columns, chunk, power;
  bool gates, past, normalise;
};
constexpr PowerAttentionExample kPowerAttentionExamples[] = {
    {2, 5, 2, 8, 9, 3, 2, true, true, true},      {1, 1, 1, 8, 1, 0, 2, false, false, false},
    {2, 70, 1, 16, 20, 0, 2, true, false, false}, {1, 150, 2, 32, 16, 140, 2, true, true, true},
    {1, 9, 2, 8, 8, 4, 4, true, true, false},     {1, 66, 1, 32, 16, 66, 2, false, false, true},
    {1, 7, 1, 8, 8, 3, 2, false, true, false},
};

// Sets the inputs that all the ops have. eps keeps the totals away from 0, where random parts of the past are negative.
template <class Args>
Args power_attention_inputs(const PowerAttentionExample& e, DType type) {
  const auto tensor = [&](i32 columns) { return input(type, {e.batch, e.rows, e.heads, columns}); };
  const Tensor numbers = input(DType::kF32, {e.batch, e.rows, e.heads});
  Args a;
  a.power = e.power, a.normalise = e.normalise;
  a.scale = 1 / std::sqrt(float(e.dim)), a.eps = 8;
  if (e.gates) a.l = numbers;
  if constexpr (requires { a.q; }) {
    a.q = tensor(e.dim), a.k = tensor(e.dim), a.v = tensor(e.columns);
    a.chunk = e.chunk;
  }
  if constexpr (requires { a.past; })
    if (e.past) a.past = tensor(e.columns + 1);
  if constexpr (requires { a.dy; }) {
    a.y = tensor(e.columns), a.dy = a.y;
    a.total = numbers, a.dtotal = numbers;
  }
  if constexpr (
      requires { a.dl_rows; } && !requires { a.dq; })
    a.dl_rows = numbers;
  return a;
}

// Sums of at most `chunk` weights of about 1/3, with gates up to e^2, times random signs; each weight has a score's error.
template <class Args>
std::vector<Case> power_attention_cases_of(double size) {
  std::vector<Case> cases;
  for (const PowerAttentionExample& e : kPowerAttentionExamples) {
    if (requires { Args::dpast; } && !e.past) continue;
    for (DType type : {DType::kF32, DType::kBf16, DType::kF16}) {
      const double rows = e.chunk > 0 ? e.chunk : e.rows, terms = std::max(1.0, std::sqrt(rows) / 2);
      cases.push_back(make_case(power_attention_inputs<Args>(e, type),
                                size * (type == DType::kF32 ? rounding_bound(type, 16 + rows + e.dim)
                                                            : rounding_bound(DType::kBf16, 8) * terms)));
    }
  }
  return cases;
}

}  // namespace heddle
