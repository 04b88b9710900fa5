#include "heddle/ops/rope/rope_rows_backward.h"
#include "heddle/ops/rope/turned_rows.h"

namespace heddle::rope_rows_backward {

std::vector<Case> cases() {
  return turned_rows_cases(&RopeRowsBackward::dy, [](DType type) { return unit_bound(type, 2); });
}

}  // namespace heddle::rope_rows_backward
