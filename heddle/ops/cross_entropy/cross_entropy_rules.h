// The checks of cross_entropy and its gradient, and their rows in fp64.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "heddle/ir/rules.h"

namespace heddle {

template <class Args>
void require_classes(const char* op, const Args& a) {
  constexpr i32 kMostColumns = 1 << 24;  // the body counts columns in floats
  require_rank(op, "logits", a.logits, 2);
  require_float(op, "logits", a.logits);
  require_shape(op, "target", a.target, {a.logits.size[0]});
  require(a.logits.last() <= kMostColumns, "[{}] logits is {}; must have {} columns at most", op,
          shape_text(a.logits), kMostColumns);
  require(a.label_smoothing >= 0 && a.label_smoothing <= 1, "[{}] label_smoothing = {}; must be 0 to 1", op,
          a.label_smoothing);
  require(a.softcap >= 0, "[{}] softcap = {}; must be 0, which is none, or above", op, a.softcap);
}

// Rows of so many columns at most are in the registers of a part of a CTA.
constexpr i32 kShortRow = 8192;

// Capped logits and targets.
struct ClassRows {
  std::vector<double> z, target;
  size_t columns = 1;
  double ignored = 0;

  std::span<const double> row(size_t r) const { return std::span(z).subspan(r * columns, columns); }
  bool is_ignored(size_t r) const { return target[r] == ignored; }
  bool is_column(size_t r) const { return !is_ignored(r) && target[r] >= 0 && target[r] < double(columns); }
};

template <class Args>
ClassRows class_rows(const Args& a, const Values& values) {
  ClassRows rows{values.read(a.logits), values.read(a.target), size_t(a.logits.last()),
                 double(a.ignore_index)};
  const double cap = double(a.softcap);
  if (cap > 0)
    for (double& v : rows.z) v = cap * std::tanh(v / cap);
  return rows;
}

inline double log_sum_exp(std::span<const double> z) {
  const double top = *std::max_element(z.begin(), z.end());
  double sum = 0;
  for (double v : z) sum += std::exp(v - top);
  return top + std::log(sum);
}

}  // namespace heddle
