#include "heddle/ir/cases.h"
#include "heddle/ops/gather_rows/gather_rows.h"

namespace heddle::gather_rows {

std::vector<Case> cases() {
  std::vector<Case> cases;
  const StepExample decode{{{.start = 4, .rows = 1}}}, mixed{{{0, 5}, {17, 1}, {3, 7}}};
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (const StepExample& step : {decode, mixed})
      for (i32 cols : {1, 65}) {
        GatherRows args{.step = step.host(), .x = input(type, {step.rows(), cols})};
        args.y = input(type == DType::kBf16 ? DType::kF32 : type, {step.wanted(), cols});
        Case one = make_case(args, 0);  // values are moved, never rounded
        one.prepare = [step](std::byte* bytes, Values& values) {
          step.fill_host(values.bytes(as<GatherRows>(bytes).step.buffer));
        };
        cases.push_back(one);
      }
  return cases;
}

}  // namespace heddle::gather_rows
