#include <algorithm>
#include <cmath>
#include <span>

#include "heddle/ir/cases.h"
#include "heddle/ops/softmax/softmax.h"

namespace heddle::softmax {
namespace {

// Values of [-spread, spread].
Case spread_by(double spread, DType type, i32 rows, i32 columns) {
  Case one = make_case(Softmax{.x = input(type, {rows, columns})}, rounding_bound(type, 8));
  one.prepare = [spread](std::byte* bytes, Values& values) {
    auto x = values.read(as<Softmax>(bytes).x);
    for (double& v : x) v *= spread;
    values.write(as<Softmax>(bytes).x, x);
  };
  return one;
}

// Rows that are -infinity throughout, or have NaN or infinity, are NaN; elements of -infinity alone weigh nothing.
Case not_finite(i32 columns) {
  Case one = make_case(Softmax{.x = input(DType::kF32, {5, columns})}, rounding_bound(DType::kF32, 8));
  one.name = "not finite";
  one.prepare = [columns](std::byte* bytes, Values& values) {
    auto x = values.read(as<Softmax>(bytes).x);
    const auto row = [&](i32 i) {
      return std::span(x).subspan(size_t(i) * size_t(columns), size_t(columns));
    };
    std::ranges::fill(row(0), -INFINITY);
    row(1).back() = NAN;
    row(2).front() = INFINITY;
    std::ranges::fill(row(3).subspan(1), -INFINITY);
    values.write(as<Softmax>(bytes).x, x);
  };
  return one;
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [rows, columns] : {std::pair{1, 1}, {19, 64}, {5, 37}, {33, 300}, {3, 3001}, {2, 40008}})
      for (double spread : {1.0, 90.0})  // 90: weights down to the smallest that f32 holds
        if (columns < 1000 || spread > 1.0) cases.push_back(spread_by(spread, type, rows, columns));
  // For a cluster of 16, and longer than what it keeps. Hundreds of elements have most of the weight.
  for (const auto& [type, columns] : {std::pair{DType::kBf16, 300008}, {DType::kF32, 1000008}})
    cases.push_back(spread_by(1000, type, 1, columns));
  for (const i32 columns : {37, 64, 40008}) cases.push_back(not_finite(columns));
  return cases;
}

}  // namespace heddle::softmax
