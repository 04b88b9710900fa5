#include "heddle/ir/cases.h"
#include "heddle/ops/embedding/embedding.h"

namespace heddle::embedding {

std::vector<Case> cases() {
  std::vector<Case> cases;
  // One decode row, rows of three sequences, and a token outside of the table, which must give NaN.
  const StepExample decode{{{.start = 4, .rows = 1}}}, mixed{{{0, 5}, {17, 1}, {3, 7}}};
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (const StepExample& step : {decode, mixed})
      for (i32 by_position : {0, 1})
        for (i32 cols : {1, 37, 128}) {
          Embedding args{.state = step.state(), .table = weight_input(type, 50, cols)};
          args.y = input(type == DType::kF16 ? DType::kF16 : DType::kF32, {step.rows(), cols});
          if (cols == 37) args.copy = input(DType::kBf16, {step.rows(), cols});
          args.by_position = by_position;
          args.scale = 1.5f;
          Case one = make_case(args, rounding_bound(args.y.dtype, 1));
          one.prepare = [step](std::byte* bytes, Values& values) {
            auto& device = step.fill_state(values.bytes(as<Embedding>(bytes).state.buffer));
            if (step.rows() > 2) device.token()[2] = 50, device.token()[1] = 49;
          };
          cases.push_back(one);
        }
  return cases;
}

}  // namespace heddle::embedding
