#include "heddle/ir/cases.h"
#include "heddle/ops/kv_append/kv_append.h"

namespace heddle {

std::vector<Case> kv_append_cases() {
  std::vector<Case> cases;
  // A decode row, and prefill and decode rows of three sequences; pages of 4 positions, so that rows cross them.
  const StepExample decode{{{.start = 6, .rows = 1}}, 4}, mixed{{{0, 9}, {17, 1}, {3, 7}}, 4};
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (const StepExample& step : {decode, mixed})
      for (auto [kv_heads, head_dim] : {std::pair{1, 1}, {2, 24}, {3, 64}}) {
        const i32 width = kv_heads * head_dim, columns = 4 * width + 3;
        KvAppend args{
            .step = step.host(), .state = step.state(), .x = input(DType::kF32, {step.rows(), columns})};
        args.keys = args.values = input(type, {step.pages(), kv_heads, step.page_size, head_dim});
        args.key_column = 2 * width, args.value_column = 3 * width + 3;
        Case one = make_case(args, rounding_bound(type, 0));
        one.prepare = [step](std::byte* bytes, Values& values) {
          auto& a = as<KvAppend>(bytes);
          step.fill_host(values.bytes(a.step.buffer));
          step.fill_state(values.bytes(a.state.buffer));
        };
        cases.push_back(one);
      }
  return cases;
}

}  // namespace heddle
