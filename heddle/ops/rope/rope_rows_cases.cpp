#include "heddle/ops/rope/rope_rows.h"
#include "heddle/ops/rope/turned_rows.h"

namespace heddle::rope_rows {

std::vector<Case> cases() {
  return turned_rows_cases(&RopeRows::x, [](DType type) { return rounding_bound(type, 2); });
}

}  // namespace heddle::rope_rows
