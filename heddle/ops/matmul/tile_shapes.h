// Plans of products choose among shapes of tiles; each kernel has a Shape of its own.
#pragma once

#include <algorithm>
#include <vector>

#include "heddle/ir/config.h"
#include "heddle/ir/rules.h"

namespace heddle {

// The shape with the wanted configuration; the first one where none is wanted.
template <class Shape, class ConfigOf>
const Shape& shape_of(const char* op, const std::vector<Shape>& shapes, const OpConfig& wanted,
                      ConfigOf&& config_of) {
  const auto found = std::ranges::find_if(shapes, [&](const Shape& shape) {
    return wanted.values().empty() || config_of(shape).values() == wanted.values();
  });
  require(found != shapes.end(), "[{}] its kernel has no configuration {}", op, wanted.text());
  return *found;
}

}  // namespace heddle
