// Groups for the cases of grouped products.
#pragma once

#include <vector>

#include "heddle/ir/cases.h"

namespace heddle {

struct GroupedExample {
  i32 m, n, k;
  i32 unit;
  std::vector<i32> ends;
};

// Groups of any size, and without rows at the beginning, in the middle and at the end; rows of no group; groups of a kernel's unit.
inline std::vector<GroupedExample> grouped_examples(bool are_terms) {
  const auto of = [&](i32 grouped, i32 other, i32 n, i32 unit, std::vector<i32> ends) {
    return are_terms ? GroupedExample{other, n, grouped, unit, std::move(ends)}
                     : GroupedExample{grouped, n, other, unit, std::move(ends)};
  };
  return {of(1, 1, 1, 1, {1}), of(37, 9, 65, 1, {0, 5, 5, 30}), of(150, 40, 24, 1, {150, 150}),
          of(256, 64, 264, 128, {128, 128, 256}), of(512, 136, 72, 128, {0, 256, 384})};
}

template <class Args>
Case grouped_case(const Args& args, double bound, const std::vector<i32>& ends) {
  Case one = make_case(args, bound);
  one.prepare = [ends](std::byte* bytes, Values& values) {
    values.write(as<Args>(bytes).ends, std::vector<double>(ends.begin(), ends.end()));
  };
  return one;
}

}  // namespace heddle
