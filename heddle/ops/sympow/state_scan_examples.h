// Cases of state_scan and of its gradient.
#pragma once

#include <type_traits>

#include "heddle/ir/cases.h"

namespace heddle {

struct StateScanExample {
  i32 batch, heads, width, columns, rows, chunk, chunks;
  bool gates, begin;
};
constexpr StateScanExample kStateScanExamples[] = {{2, 2, 8, 9, 5, 3, 2, true, true},
                                                   {1, 1, 64, 1, 1, 0, 1, false, false},
                                                   {1, 2, 70, 40, 130, 32, 5, true, true}};

// A decay is at most e: sums of `chunks` terms reach e^chunks.
template <class Args>
std::vector<Case> state_scan_cases_of() {
  std::vector<Case> cases;
  for (const auto& [batch, heads, width, columns, rows, chunk, chunks, gates, begin] : kStateScanExamples)
    for (DType type : {DType::kF32, DType::kBf16, DType::kF16}) {
      const Tensor states = input(type, {batch, heads, chunks * width, columns});
      const Tensor state = input(DType::kF32, {batch, heads, width, columns});
      Args a;
      a.chunks = chunks, a.chunk = chunk;
      if (gates) a.l = input(DType::kF32, {batch, rows, heads});
      if constexpr (requires { a.u; }) {
        a.u = states;
        if (begin) a.s0 = state;
      } else {
        a.s = states, a.ds = states, a.dlast = state;
      }
      cases.push_back(make_case(a, unit_bound(type, 16 * chunks + 16 * columns)));
    }
  return cases;
}

}  // namespace heddle
