#include "heddle/ops/matmul/bmm.h"
#include "heddle/ops/matmul/product_examples.h"

namespace heddle::bmm {
namespace {

Matrices stack_input(DType type, i32 batches, i32 rows, i32 columns, bool transposed) {
  return {.data = transposed ? input(type, {batches, columns, rows}) : input(type, {batches, rows, columns}),
          .transposed = transposed};
}

struct Size {
  i32 b, m, n, k;
};
// One and several blocks of rows and columns, with tails; rows of whole 16-byte words, and others.
constexpr Size kSizes[] = {{1, 1, 1, 1}, {3, 37, 65, 9}, {2, 130, 72, 136}, {5, 8, 16, 64}};

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const auto& [b, m, n, k] : kSizes)
    for (int order = 0; order < 4; ++order)
      for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
        cases.push_back(make_case(Bmm{.a = stack_input(type, b, m, k, order % 2 != 0),
                                      .b = stack_input(type, b, k, n, order / 2 != 0)},
                                  product_bound(type, k)));
  // These have two dtypes, and are parts of larger matrices: rows and batches lie apart.
  Bmm parts{.a = stack_input(DType::kBf16, 3, 40, 48, false), .b = stack_input(DType::kF32, 3, 48, 24, true)};
  parts.a.data.stride[1] = 56, parts.a.data.stride[0] = 41 * 56;
  parts.b.data.stride[0] = 24 * 48 + 4;
  cases.push_back(make_case(parts, product_bound(DType::kF32, 48)));
  return cases;
}

}  // namespace heddle::bmm
