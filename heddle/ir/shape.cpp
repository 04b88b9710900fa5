#include "heddle/ir/shape.h"

#include <span>

#include <fmt/ranges.h>

namespace heddle {

i64 elements(const Tensor& tensor) {
  i64 count = 1;
  for (int d = 0; d < tensor.rank; ++d) count *= tensor.size[d];
  return count;
}

std::string shape_text(const Tensor& tensor) {
  return fmt::format("{} {}", name(tensor.dtype), std::span(tensor.size, tensor.rank));
}

}  // namespace heddle
