// How a product of two activations is cut into tiles. Only the host reads it.
#pragma once

#include <vector>

#include "heddle/ir/op.h"

namespace heddle {

// Tiles of the sum; on a GPU also the terms that are on chip at a time. None needs more memory than the default.
inline std::vector<OpConfig> sum_of_products_configs(const std::byte*, const TilingTarget& target) {
  if (!target.gpu) return {{{"rows", 64}, {"columns", 64}}, {{"rows", 32}, {"columns", 32}}};
  return {{{"rows", 64}, {"columns", 64}, {"chunk", 64}},
          {{"rows", 32}, {"columns", 32}, {"chunk", 64}},
          OpConfig{{"rows", 64}, {"columns", 64}, {"chunk", 32}}.reordering()};
}

inline std::vector<TileAxis> sum_of_products_axes(const TileAxis& rows, const TileAxis& columns,
                                                  const TilingTarget& target) {
  std::vector<TileAxis> axes = {rows, columns};
  axes[0].preferred = target.config ? i32(target.config->at("rows")) : 64;
  axes[1].preferred = target.config ? i32(target.config->at("columns")) : 64;
  return axes;
}

}  // namespace heddle
