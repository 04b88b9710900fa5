#include "heddle/ir/cases.h"
#include "heddle/ops/flash_attention/flash_attention_delta.h"

namespace heddle::flash_attention_delta {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [rows, heads, dim] : {std::array{5, 2, 8}, {1, 1, 1}, {40, 3, 70}})
      for (const bool has_dlse : {true, false}) {
        FlashAttentionDelta args{.y = input(type, {2, rows, heads, dim}),
                                 .dy = input(type, {2, rows, heads, dim})};
        if (has_dlse) args.dlse = input(DType::kF32, {2, heads, rows});
        cases.push_back(make_case(args, rounding_bound(DType::kF32, 8 + 0.25 * dim)));
      }
  return cases;
}

}  // namespace heddle::flash_attention_delta
