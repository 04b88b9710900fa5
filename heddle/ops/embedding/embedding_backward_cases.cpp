#include "heddle/ir/cases.h"
#include "heddle/ops/embedding/embedding_backward.h"

namespace heddle::embedding_backward {

std::vector<Case> cases() {
  std::vector<Case> cases;
  // One decode row; rows of three sequences, some of which take one row of the table; a token outside of it.
  const StepExample decode{{{.start = 4, .rows = 1}}}, mixed{{{0, 5}, {17, 1}, {3, 7}}};
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (const StepExample& step : {decode, mixed})
      for (i32 by_position : {0, 1})
        for (auto [table_rows, columns] : {std::pair{50, 1}, {50, 37}, {300, 128}}) {
          EmbeddingBackward args{.state = step.state(),
                                 .table = input(type, {table_rows, columns}),
                                 .dy = input(type, {step.rows(), columns})};
          if (columns == 37) args.dcopy = input(DType::kBf16, {step.rows(), columns});
          args.by_position = by_position;
          args.scale = 1.5f;
          Case one = make_case(args, rounding_bound(DType::kF32, 16));
          one.prepare = [step](std::byte* bytes, Values& values) {
            const auto& a = as<EmbeddingBackward>(bytes);
            auto& device = step.fill_state(values.bytes(a.state.buffer));
            if (step.rows() < 8) return;
            device.token()[2] = a.table.size[0];
            for (i32 row : {1, 4, 7}) device.token()[row] = 49;
          };
          cases.push_back(one);
        }
  return cases;
}

}  // namespace heddle::embedding_backward
