#include "python/src/columns.h"

#include <cstring>

namespace heddle::python {
namespace {

i64 integer_at(const Tensor& tensor, i64 row) {
  const u8* const at = tensor.data + row * tensor.stride[0] * size_of(tensor.dtype);
  i64 wide = 0;
  i32 narrow = 0;
  if (tensor.dtype == DType::kI64) return std::memcpy(&wide, at, sizeof wide), wide;
  return std::memcpy(&narrow, at, sizeof narrow), narrow;
}

}  // namespace

void require_columns(const OpEntry& entry, const std::byte* args) {
  if (!entry.ignored) return;
  const Tensor& table = entry.inputs[0].field->tensor(args);
  const i64 ignored = std::get<i64>(get_attribute(*entry.ignored, args));
  for (const TensorArgument& input : entry.inputs) {
    const Tensor& named = input.field->tensor(args);
    if (named.rank != 1 || (named.dtype != DType::kI32 && named.dtype != DType::kI64)) continue;
    for (i64 row = 0; row < named.size[0]; ++row)
      if (const i64 column = integer_at(named, row);
          column != ignored && (column < 0 || column >= table.last()))
        fail(ErrorCode::kInvalidArgument, "[{}] {}[{}] is {}; must be 0 to {}, or {} = {}", entry.op.name,
             input.name, row, column, table.last() - 1, entry.ignored->name, ignored);
  }
}

}  // namespace heddle::python
