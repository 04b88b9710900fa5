// Rows for the cases of cross_entropy and its gradient.
#pragma once

#include <vector>

#include "heddle/ir/cases.h"

namespace heddle {

struct LossOptions {
  float label_smoothing, softcap, z_loss;
};
constexpr LossOptions kLossOptions[] = {
    {0, 0, 0}, {0.25f, 0, 0}, {0, 2, 0}, {0, 0, 0.125f}, {0.125f, 3, 0.25f}};

// Targets all over the columns; every fourth one is ignored.
template <class Args>
void fill_targets(const Args& a, Values& values) {
  std::vector<double> target;
  for (i32 row = 0; row < a.logits.size[0]; ++row)
    target.push_back(row % 4 == 2 ? a.ignore_index : (7 * row + 3) % a.logits.last());
  values.write(a.target, target);
}

// Calls f(arguments' logits, target, options) for each case.
template <class F>
void each_loss_case(F&& f) {
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [rows, columns] : {std::pair{1, 1}, {19, 64}, {5, 37}, {33, 300}, {2, 5000}, {1, 9000}})
      for (const LossOptions& options : kLossOptions)
        for (DType target : {DType::kI64, DType::kI32})
          f(input(type, {rows, columns}), input(target, {rows}), options);
}

}  // namespace heddle
