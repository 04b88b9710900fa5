#include <cmath>

#include "heddle/ir/cases.h"
#include "heddle/ops/linear/linear.h"

namespace heddle::linear {
namespace {

// The bound for products of values in [-1, 1] summed over k. A narrow weight may make the inputs narrow too: k independent roundings.
// In FP32 only the sum rounds.
double bound_of_sum(DType type, i32 k) {
  if (type == DType::kF32) return rounding_bound(type, 8) * std::max(1, k / 8);
  return rounding_bound(DType::kBf16, 8) * std::max(1.0, std::sqrt(k) / 2);
}

// Panels of codes for a CPU, and those that a GPU's ring streams, in parts and with blocks left after the last whole word.
void add_coded_cases(std::vector<Case>& cases) {
  for (const Code code : {Code::kF8E4M3, Code::kI4})
    for (auto [m, n, k, group] : {std::array{1, 37, 64, 0},
                                  {3, 20, 130, 32},
                                  {1, 34, 2048, 128},
                                  {1, 21, 1810, 64},
                                  {1, 6, 18000, 128},
                                  {1, 9, 9000, 0},
                                  {3, 33, 2304, 512},
                                  {11, 18, 72, 16}})
      for (const bool streamed : {false, true}) {
        Linear made{.x = input(DType::kF32, {m, k}), .w = weight_input(DType::kBf16, n, k)};
        if (!streamed && k > 200) continue;
        if (streamed) made.w.panel_rows = 2;
        made.w.coding = {code, static_cast<unsigned short>(group)};
        made.w.interleave = (streamed ? 128 : 8) / bits_of(code);
        cases.push_back(make_case(made, bound_of_sum(DType::kBf16, k)));
      }
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [m, n, k] : {std::array{1, 1, 1}, {1, 48, 64}, {3, 37, 65}, {9, 300, 31}, {40, 96, 130}}) {
      const Linear linear{.x = input(DType::kF32, {m, k}), .w = weight_input(type, n, k)};
      cases.push_back(make_case(linear, bound_of_sum(type, k)));
    }
  // Panels of 2 rows by 24 columns, as a GPU's stream may have them.
  Linear sliced{.x = input(DType::kF32, {2, 70}), .w = weight_input(DType::kBf16, 10, 70)};
  sliced.w.panel_rows = 2;
  sliced.w.panel_cols = 24;
  cases.push_back(make_case(sliced, bound_of_sum(DType::kBf16, 70)));
  // The panels of a GPU's ring: 16-byte words of two rows in turn; one row, a few, and more than it takes.
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [m, n, k] : {std::array{1, 301, 64},
                           {1, 70, 700},
                           {1, 21, 1800},
                           {1, 34, 2048},
                           {1, 21, 2050},
                           {1, 9, 5000},
                           {1, 6, 9000},
                           {1, 3, 17000},
                           {3, 70, 130},
                           {4, 80, 24},
                           {8, 33, 2304},
                           {11, 18, 72}}) {
      Linear paired{.x = input(DType::kF32, {m, k}), .w = weight_input(type, n, k)};
      paired.w.panel_rows = 2;
      paired.w.interleave = 16 / size_of(type);
      cases.push_back(make_case(paired, bound_of_sum(type, k)));
    }
  // Products of rows that are as narrow as the weight.
  for (DType type : {DType::kBf16, DType::kF16})
    for (auto [m, n, k] : {std::array{1, 21, 72},
                           {1, 34, 2048},
                           {1, 21, 2050},
                           {1, 9, 5000},
                           {1, 34, 8192},
                           {3, 33, 2304},
                           {3, 33, 3072}}) {
      Linear narrow{.x = input(type, {m, k}), .w = weight_input(type, n, k)};
      narrow.w.panel_rows = 2;
      narrow.w.interleave = 8;
      cases.push_back(make_case(narrow, bound_of_sum(type, k)));
    }
  // Tiles of many rows on tensor cores: full ones and tails of each dimension, wide and narrow ones.
  for (DType type : {DType::kBf16, DType::kF16})
    for (auto [m, n, k] :
         {std::array{130, 150, 264}, {257, 70, 40}, {65, 33, 200}, {128, 4102, 64}, {129, 8200, 72}}) {
      Linear tiled{.x = input(type, {m, k}), .w = weight_input(type, n, k)};
      tiled.w.panel_rows = 2;
      tiled.w.interleave = 8;
      cases.push_back(make_case(tiled, bound_of_sum(type, k)));
    }
  // A whole kernel takes these (linear_kernel.cpp): tails of each dimension, tiles of each number of rows, and few rows with one, two
  // and four parts of k.
  for (DType type : {DType::kBf16, DType::kF16})
    for (auto [m, n, k] : {std::array{200, 152, 96},
                           {300, 264, 64},
                           {513, 1032, 32},
                           {1030, 2064, 32},
                           {9, 152, 64},
                           {16, 264, 320},
                           {40, 136, 1056},
                           {64, 392, 512}}) {
      Linear whole{.x = input(type, {m, k}), .w = weight_input(type, n, k)};
      whole.w.panel_rows = 2;
      whole.w.interleave = 8;
      cases.push_back(make_case(whole, bound_of_sum(type, k)));
    }
  add_coded_cases(cases);
  return cases;
}

}  // namespace heddle::linear
