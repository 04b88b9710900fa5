// Random layouts for the laws of heddle/tile.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "heddle/tile/layout.h"

namespace heddle::tile {

class RandomLayouts {
 public:
  explicit RandomLayouts(unsigned seed) : random_(seed) {}

  i32 number(i32 first, i32 last) { return std::uniform_int_distribution<i32>(first, last)(random_); }
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[size_t(number(0, i32(values.size()) - 1))];
  }
  // Modes in a random order of strides, with gaps where `gaps` holds. Injective.
  Layout layout(i32 most_rank, bool gaps, const std::vector<i32>& shapes = {1, 2, 3, 4, 8}) {
    const i32 rank = number(1, most_rank);
    std::vector<i32> order(size_t(rank), 0), shape(order), stride(order);
    for (i32 i = 0; i < rank; ++i) order[size_t(i)] = i, shape[size_t(i)] = one_of(shapes);
    std::shuffle(order.begin(), order.end(), random_);
    i32 filled = 1;
    for (const i32 i : order) {
      stride[size_t(i)] = filled;
      filled *= shape[size_t(i)] * (gaps && number(0, 2) == 0 ? 2 : 1);
    }
    Layout made;
    for (i32 i = 0; i < rank; ++i) made = made.with(shape[size_t(i)], stride[size_t(i)]);
    return made;
  }

 private:
  std::mt19937 random_;
};

}  // namespace heddle::tile
