#include <set>

#include "heddle/ir/cases.h"
#include "heddle/ops/flash_attention/attention_examples.h"
#include "heddle/ops/flash_attention/flash_attention_earlier_backward.h"

namespace heddle::flash_attention_earlier_backward {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [rows, heads, dim] : {std::array{5, 2, 8}, {1, 1, 1}, {40, 3, 70}})
      for (DType earlier : std::set{DType::kF32, type}) {
        FlashAttentionEarlierBackward args{.y_in = input(earlier, {2, rows, heads, dim}),
                                           .lse_in = input(DType::kF32, {2, heads, rows}),
                                           .dy = input(type, {2, rows, heads, dim}),
                                           .lse = input(DType::kF32, {2, heads, rows}),
                                           .delta = input(DType::kF32, {2, heads, rows})};
        // Weights are exp(lse_in - lse) of random values.
        cases.push_back(make_case(args, unit_bound(earlier, 64 + dim)));
        cases.back().prepare = [](std::byte* bytes, Values& values) {
          leave_out_results(as<FlashAttentionEarlierBackward>(bytes).lse_in, values);
        };
      }
  return cases;
}

}  // namespace heddle::flash_attention_earlier_backward
