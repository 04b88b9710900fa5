#include "heddle/ir/cases.h"
#include "heddle/ops/sympow/state_values_backward.h"

namespace heddle::state_values_backward {

// A decay is at most e^2.
std::vector<Case> cases() {
  struct Shape {
    i32 batch, rows, heads, columns, chunk;
    bool gates, normalise;
  };
  std::vector<Case> cases;
  for (DType type : {DType::kF32, DType::kBf16, DType::kF16})
    for (const auto& [batch, rows, heads, columns, chunk, gates, normalise] :
         {Shape{2, 5, 2, 9, 3, true, true},
          {1, 150, 2, 32, 140, true, false},
          {1, 3, 1, 8, 0, false, true},
          {2, 130, 3, 72, 64, true, true}}) {
      StateValuesBackward a{
          .v = input(type, {batch, rows, heads, columns}), .chunk = chunk, .normalise = normalise};
      if (gates) a.l = input(DType::kF32, {batch, rows, heads});
      a.ds = input(type, {batch, rows, heads, columns + (normalise ? 8 : 0)});
      cases.push_back(make_case(a, unit_bound(type, columns + 4.0 * rows)));
    }
  return cases;
}

}  // namespace heddle::state_values_backward
