#include <array>

#include "heddle/ir/cases.h"
#include "heddle/ops/experts/expert_sum.h"

namespace heddle::expert_sum {

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [rows, taken, columns] : {std::array{1, 1, 1}, {1, 8, 64}, {5, 3, 37}, {33, 2, 600}})
      cases.push_back(make_case(
          ExpertSum{.x = input(type, {rows * taken, columns}), .share = input(DType::kF32, {rows, taken})},
          rounding_bound(type, 2 * taken)));
  // Rows in another order, more of them than places, and places without a row: all of some tokens.
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (auto [rows, taken, columns] : {std::array{1, 1, 8}, {5, 3, 37}, {41, 1, 520}, {33, 8, 264}}) {
      const i32 there = rows * taken + 3;
      Case one = make_case(ExpertSum{.x = input(type, {there, columns}),
                                     .share = input(DType::kF32, {rows, taken}),
                                     .place = input(DType::kI32, {rows, taken})},
                           rounding_bound(type, 2 * taken));
      one.prepare = [there, taken = taken](std::byte* bytes, Values& values) {
        const auto& a = as<ExpertSum>(bytes);
        auto place = values.read(a.place);
        for (size_t i = 0; i < place.size(); ++i)
          place[i] = i / size_t(taken) % 4 == 1 || i % 5 == 3 ? -1 : double((i * 7 + 2) % size_t(there));
        values.write(a.place, place);
      };
      cases.push_back(one);
    }
  return cases;
}

}  // namespace heddle::expert_sum
