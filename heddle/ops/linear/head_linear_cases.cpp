#include "heddle/ir/cases.h"
#include "heddle/ops/linear/head_linear.h"

namespace heddle::head_linear {

std::vector<Case> cases() {
  std::vector<Case> cases;
  struct HeadSizes {
    i32 rows, heads, head_rows, k, panel_rows;
  };
  const auto add = [&](const HeadSizes& s, DType type, i32 interleave) {
    HeadLinear args{.x = input(DType::kF32, {s.rows, s.heads * s.k}),
                    .w = weight_input(type, s.heads * s.head_rows, s.k)};
    args.heads = s.heads;
    args.w.panel_rows = s.panel_rows;
    args.w.interleave = interleave;
    // Products of values in [-1, 1] summed over k; a narrow weight may make the inputs narrow too.
    const double bound = rounding_bound(type == DType::kF32 ? DType::kF32 : DType::kBf16, 8);
    cases.push_back(make_case(args, bound * std::max(2, s.k / 8)));
  };
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16}) {
    for (const HeadSizes& sizes : {HeadSizes{1, 1, 1, 1, 1},
                                   {1, 3, 32, 24, 16},
                                   {3, 5, 7, 33, 7},
                                   {9, 2, 528, 10, 16},
                                   {40, 4, 16, 130, 16}})
      add(sizes, type, type == DType::kF32 ? 1 : 2);
    // The panels of a GPU's ring: heads of less than an item, of some items and a rest, of more than a fragment.
    for (const HeadSizes& sizes : {HeadSizes{1, 5, 10, 64, 2},
                                   {1, 3, 70, 24, 2},
                                   {3, 2, 300, 40, 2},
                                   {1, 2, 6, 2304, 2},
                                   {11, 3, 18, 72, 2}})
      add(sizes, type, 16 / size_of(type));
  }
  return cases;
}

}  // namespace heddle::head_linear
