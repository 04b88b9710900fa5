#include "heddle/ir/cases.h"
#include "heddle/ops/kv_append/kv_append.h"

namespace heddle::kv_append {
namespace {

Case case_of(const KvAppend& args, const StepExample& step) {
  Case one = make_case(args, rounding_bound(args.keys.dtype, 0));
  one.prepare = [step](std::byte* bytes, Values& values) {
    auto& a = as<KvAppend>(bytes);
    step.fill_host(values.bytes(a.step.buffer));
    step.fill_state(values.bytes(a.state.buffer));
  };
  return one;
}

}  // namespace

std::vector<Case> cases() {
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
        cases.push_back(case_of(args, step));
        args.values = {}, args.value_column = 0;
        if (kv_heads == 1) cases.push_back(case_of(args, step));
      }
  return cases;
}

}  // namespace heddle::kv_append
