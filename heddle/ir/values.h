// A tensor's values as fp64, row-major, for references and tests.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "heddle/ir/tensor.h"

namespace heddle {

// `from` and `to` are the address of the tensor's first element.
std::vector<double> load_values(const Tensor& tensor, const std::byte* from);
void store_values(const Tensor& tensor, std::byte* to, std::span<const double> values);

// The larger one, or NaN where either is NaN: std::max may lose it.
inline double max_or_nan(double a, double b) {
  return a != a || a > b ? a : b;
}

}  // namespace heddle
