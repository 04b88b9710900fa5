#include "heddle/ops/matmul/matmul.h"
#include "heddle/ops/matmul/product_examples.h"

namespace heddle::matmul {
namespace {

Matrix matrix_input(DType type, i32 rows, i32 cols, bool transposed = false) {
  return {.data = transposed ? input(type, {cols, rows}) : input(type, {rows, cols}),
          .transposed = transposed};
}

// Codes with a scale, and a zero if `zeros`, for each row of the data and each of `groups` groups of columns. Rows of
// i4 are whole bytes.
Matrix codes_input(DType type, i32 rows, i32 cols, bool transposed, i32 groups, bool zeros,
                   bool one_row = false) {
  Matrix codes = matrix_input(type, rows, cols, transposed);
  if (type == DType::kI4) codes.data.stride[0] = (codes.data.size[1] + 1) / 2 * 2;
  codes.scales = input(DType::kF32, {one_row ? 1 : codes.data.size[0], groups});
  if (zeros) codes.zeros = codes.scales;
  return codes;
}

struct Size {
  i32 m, n, k;
};
constexpr Size kSizes[] = {{1, 1, 1},    {1, 48, 64},    {3, 37, 65},    {70, 1, 9},  {9, 300, 1},
                           {65, 33, 40}, {130, 96, 136}, {257, 140, 72}, {5, 131, 67}};

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const auto& [m, n, k] : kSizes)
    for (int order = 0; order < 4; ++order)
      for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
        cases.push_back(make_case(Matmul{.a = matrix_input(type, m, k, order % 2 != 0),
                                         .b = matrix_input(type, k, n, order / 2 != 0)},
                                  product_bound(type, k)));
  // Weights of codes, in columns, as they are stored: [N, K] with scales of each row, of groups, of all.
  for (const auto& [m, n, k] : {Size{1, 48, 64}, {33, 70, 128}, {130, 64, 96}})
    for (DType type : {DType::kI8, DType::kI4, DType::kF8E4M3, DType::kF8E5M2})
      for (DType other : {DType::kBf16, DType::kF16, DType::kF32}) {
        const Matrix a = matrix_input(other, m, k);
        const bool zeros = is_integer(type);
        // Codes of integers reach from -127 to 127, or from -7 to 7.
        const double size = type == DType::kI8 ? 255 : type == DType::kI4 ? 9 : 1;
        for (const Matrix& b :
             {codes_input(type, k, n, true, 1, false), codes_input(type, k, n, true, 4, zeros),
              codes_input(type, k, n, false, 1, zeros, true)})
          cases.push_back(make_case(Matmul{.a = a, .b = b}, size * product_bound(other, k)));
      }
  // Both narrow: products of fp8.
  for (DType left : {DType::kF8E4M3, DType::kF8E5M2}) {
    const Matmul product{.a = codes_input(left, 40, 64, false, 1, false),
                         .b = codes_input(DType::kF8E4M3, 64, 24, true, 1, false)};
    cases.push_back(make_case(product, product_bound(DType::kBf16, 64)));
  }
  const Matmul both{.a = codes_input(DType::kI8, 40, 64, false, 2, true),
                    .b = codes_input(DType::kI4, 64, 24, true, 1, false)};
  cases.push_back(make_case(both, 255 * 9 * product_bound(DType::kBf16, 64)));
  // Rows and columns that are parts of larger matrices.
  Matmul parts{.a = matrix_input(DType::kBf16, 33, 40), .b = matrix_input(DType::kBf16, 40, 21, true)};
  parts.a.data.stride[0] = 47, parts.b.data.stride[0] = 64;
  cases.push_back(make_case(parts, product_bound(DType::kBf16, 40)));
  // Several slabs, with a tail in each dimension; rows that begin at words of 16 bytes, and rows that do not.
  for (int order = 0; order < 4; ++order)
    for (DType type : {DType::kF32, DType::kBf16, DType::kI8})
      for (i32 more : {0, 5}) {
        const auto other = type == DType::kI8 ? DType::kBf16 : type;
        Matmul steps{.a = matrix_input(other, 72, 392, order % 2 != 0),
                     .b = matrix_input(type, 392, 88, order / 2 != 0)};
        steps.a.data.stride[0] += more, steps.b.data.stride[0] += more;
        cases.push_back(make_case(steps, (type == DType::kI8 ? 255 : 1) * product_bound(other, 392)));
      }
  return cases;
}

}  // namespace heddle::matmul
