#include "heddle/ir/shape_text.h"

#include <span>

#include <fmt/ranges.h>

namespace heddle {

std::string shape_text(const Tensor& tensor) {
  return fmt::format("{} {}", name(tensor.dtype), std::span(tensor.size, tensor.rank));
}

}  // namespace heddle
