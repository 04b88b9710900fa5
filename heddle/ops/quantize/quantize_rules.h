// Checks of codes, and codes in fp64.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "heddle/ir/rules.h"
#include "heddle/ir/values.h"
#include "heddle/kit/rows/row_kernel.h"
#include "heddle/ops/quantize/code_kind.h"

namespace heddle {

// Groups that hold `count` elements, of which there is one at least.
inline i32 groups_of(i32 count, i32 group = kCodeBlock) {
  return (count - 1) / group + 1;
}

// Gives codes their dtype and sizes.
inline void set_codes(const char* op, const char* argument, Tensor& codes, i32 code,
                      const std::vector<i32>& shape) {
  require(code >= 0 && code < kNumCodeKinds, "[{}] code = {}; must be 0 to {}", op, code, kNumCodeKinds - 1);
  if (codes.rank == 0) codes = dense(kCodeTypes[code], shape);
  require_shape(op, argument, codes, shape);
  require_dtype(op, argument, codes, kCodeTypes[code]);
}

// Integers have no NaN: its code is 0, and its scale says that it was there.
inline double code_near(double value, double largest, i32 code) {
  return std::isnan(value) && code == kCodeI8 ? 0 : std::clamp(value, -largest, largest);
}

// Codes and scales of rows of `columns` values, in groups of `group`.
struct Coded {
  std::vector<double> codes, scales;
};
inline Coded coded(const std::vector<double>& x, size_t columns, size_t group, i32 code) {
  Coded made;
  for (size_t row = 0; row < x.size(); row += columns)
    for (size_t begin = 0; begin < columns; begin += group) {
      const size_t end = std::min(columns, begin + group);
      double most = 1e-30;
      for (size_t i = begin; i < end; ++i) most = max_or_nan(most, std::abs(x[row + i]));
      const double largest = double(kLargestCode[code]), scale = most / largest;
      made.scales.push_back(scale);
      for (size_t i = begin; i < end; ++i) made.codes.push_back(code_near(x[row + i] / scale, largest, code));
    }
  return made;
}

// Tiles of codes in both layouts: rows that are whole blocks.
template <class Args>
std::vector<TileAxis> both_axes(const std::byte* args, const TilingTarget&) {
  return {{.dim = "M", .extent = as<Args>(args).x.size[0], .unit = kCodeBlock, .preferred = kCodeBlock}};
}

// Squares, whose codes are written in words.
template <class Args>
RowWork both_work(const std::byte* args) {
  const auto& a = as<Args>(args);
  RowWork work{.form = RowForm::kSquares, .matrices = {&a.x}, .kind = a.code, .adds_up = false};
  if (a.x.size[0] % 16 != 0 || a.x.last() % 8 != 0 || a.transposed.stride[0] % 16 != 0 ||
      a.codes.stride[0] % 8 != 0)
    work.misfit =
        fmt::format("{} rows of {}, and codes {} and {} bytes apart, are not multiples of 16, 8, 8 and 16",
                    a.x.size[0], a.x.last(), a.codes.stride[0], a.transposed.stride[0]);
  return work;
}

}  // namespace heddle
