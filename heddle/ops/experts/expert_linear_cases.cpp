#include <algorithm>
#include <random>

#include "heddle/ir/cases.h"
#include "heddle/ops/experts/expert_linear.h"

namespace heddle::expert_linear {
namespace {

struct Shape {
  i32 rows, experts, taken, n, k;
  bool by_entry = false;  // x has a row for each entry
};

// Different experts for each token; the later ones seldom.
void choose(const Tensor& choice, i32 experts, Values& values) {
  std::minstd_rand draw(7);
  std::vector<double> chosen;
  for (i32 row = 0; row < choice.size[0]; ++row) {
    const size_t begin = chosen.size();
    while (chosen.size() < begin + size_t(choice.last())) {
      const i32 expert = i32(std::min(draw() % u32(experts), draw() % u32(experts)));
      if (std::find(chosen.begin() + long(begin), chosen.end(), expert) == chosen.end())
        chosen.push_back(expert);
    }
  }
  values.write(choice, chosen);
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (const Shape& shape : {Shape{1, 1, 1, 5, 3},
                               {1, 8, 2, 37, 64},
                               {3, 16, 4, 64, 40, true},
                               {7, 5, 2, 33, 130},
                               {40, 3, 2, 48, 72, true},
                               {300, 2, 1, 16, 24}}) {
      const StepExample step{{{.start = 4, .rows = shape.rows - shape.rows / 4}, {.start = 0, .rows = 1}}};
      const i32 rows = step.rows() + 1;  // the last one is not live
      ExpertLinear args{.step = step.host(), .choice = input(DType::kI32, {rows, shape.taken})};
      args.x = input(type, {shape.by_entry ? rows * shape.taken : rows, shape.k});
      args.w = weight_input(type, shape.n, shape.k);
      args.w.matrices = shape.experts;
      args.y = input(type == DType::kF16 ? type : DType::kF32, {rows * shape.taken, shape.n});
      Case one = make_case(args, 2 * rounding_bound(args.y.dtype, shape.k));
      one.prepare = [step](std::byte* bytes, Values& values) {
        const auto& a = as<ExpertLinear>(bytes);
        step.fill_host(values.bytes(a.step.buffer));
        choose(a.choice, a.w.matrices, values);
      };
      cases.push_back(one);
    }
  return cases;
}

}  // namespace heddle::expert_linear
