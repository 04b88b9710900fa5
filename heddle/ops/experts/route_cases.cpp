#include <algorithm>

#include "heddle/ir/cases.h"
#include "heddle/ops/experts/route.h"

namespace heddle::route {
namespace {

struct Shape {
  i32 rows, experts, taken, groups = 1, kept = 1;
};

// Values in steps of 4 / n in an order of each row's own: rounding swaps no two of them.
void spread(const Tensor& tensor, Values& values) {
  std::vector<double> x = values.read(tensor);
  const size_t columns = size_t(tensor.last());
  for (size_t row = 0; row < x.size() / columns; ++row) {
    double* at = &x[row * columns];
    const std::vector<double> drawn(at, at + columns);
    for (size_t i = 0; i < columns; ++i) {
      const auto below = std::ranges::count_if(drawn, [&](double v) { return v < drawn[i]; });
      at[i] = 4 * double(below) / double(columns) - 2;
    }
  }
  values.write(tensor, x);
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16})
    for (const Shape& shape :
         {Shape{1, 1, 1}, {1, 8, 2}, {5, 37, 3}, {33, 128, 8}, {9, 40, 4, 8, 3}, {2, 6, 3, 3, 2}})
      for (i32 sigmoid : {0, 1}) {
        Route args{.logits = input(type, {shape.rows, shape.experts})};
        if (sigmoid || shape.rows == 5) args.bias = input(DType::kF32, {shape.experts});
        args.choice = input(DType::kI32, {shape.rows, shape.taken});
        args.sigmoid = sigmoid, args.normalise = 1 - shape.rows % 2 * sigmoid;
        args.groups = shape.groups, args.groups_kept = shape.kept;
        args.scores_of_group = sigmoid && shape.experts > shape.groups ? 2 : 1;
        args.scale = sigmoid ? 2.5f : 1;
        if (shape.experts == 40 || shape.rows == 1) args.factors = input(DType::kF32, {shape.experts});
        Case one = make_case(args, 1e-6);
        one.prepare = [](std::byte* bytes, Values& values) { spread(as<Route>(bytes).logits, values); };
        cases.push_back(one);
      }
  for (const Shape& shape : {Shape{1, 1, 1}, {5, 16, 2}, {33, 37, 3}})
    for (const float threshold : {0.0f, 0.02f, 0.31f}) {
      Route args{.logits = input(DType::kF32, {shape.rows, shape.experts})};
      args.choice = input(DType::kI32, {shape.rows, shape.taken});
      args.sparse_mixer = 1, args.threshold = threshold;
      Case one = make_case(args, 1e-6);
      one.prepare = [](std::byte* bytes, Values& values) { spread(as<Route>(bytes).logits, values); };
      cases.push_back(one);
    }
  return cases;
}

}  // namespace heddle::route
