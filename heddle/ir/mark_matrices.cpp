#include "heddle/ir/mark_matrices.h"

#include <algorithm>
#include <string>

#include "heddle/base/invariant.h"

namespace heddle {

void mark_matrices(OpSpec& op, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const Field* const transposed = find_field(op.fields, std::string(name) + ".transposed");
    const auto field = std::ranges::find(op.fields, name, &Field::name);
    HEDDLE_CHECK(transposed && field != op.fields.end());
    field->member = std::string(name) + ".data";
    field->transposed_at = i64(transposed->offset);
  }
}

}  // namespace heddle
