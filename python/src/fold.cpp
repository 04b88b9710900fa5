#include "python/src/fold.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "heddle/base/error.h"
#include "heddle/ir/shape.h"

namespace heddle::python {
namespace {

// Merges dimensions into one. False where their elements have no common stride.
bool merge(std::span<const i64> size, std::span<const i64> stride, i64& elements, i64& step) {
  elements = 1, step = 0;
  bool is_regular = true;
  for (size_t d = size.size(); d-- > 0;) {
    if (size[d] != 1 && elements != 1 && stride[d] != step * elements) is_regular = false;
    if (size[d] != 1 && elements == 1) step = stride[d];
    elements *= size[d];
  }
  return is_regular || elements == 0;
}

// Memory from the first byte of a tensor to its last.
struct Range {
  const u8 *begin, *end;
};

Range range_of(const Tensor& tensor) {
  i64 low = 0, high = 0;
  for (int d = 0; d < tensor.rank; ++d) {
    const i64 reach = (i64(tensor.size[d]) - 1) * tensor.stride[d];
    (reach < 0 ? low : high) += reach;
  }
  return {tensor.data + bytes_of(tensor.dtype, low), tensor.data + bytes_of(tensor.dtype, high + 1)};
}

bool same_place(const Tensor& a, const Tensor& b) {
  return a.data == b.data && a.dtype == b.dtype && a.rank == b.rank &&
         std::equal(a.size, a.size + a.rank, b.size) && std::equal(a.stride, a.stride + a.rank, b.stride);
}

// True for two matrices that are different columns of one.
bool are_other_columns(const Tensor& a, const Tensor& b) {
  if (a.rank != 2 || b.rank != 2 || a.dtype != b.dtype || a.stride[0] != b.stride[0] || a.stride[0] <= 0)
    return false;
  const i64 row = bytes_of(a.dtype, a.stride[0]);
  const i64 apart = (((b.data - a.data) % row) + row) % row;
  return apart >= bytes_of(a.dtype, a.size[1]) && apart + bytes_of(b.dtype, b.size[1]) <= row;
}

}  // namespace

std::string sizes_text(std::span<const i64> sizes) {
  std::string text;
  for (const i64 size : sizes) text += fmt::format("{}{}", text.empty() ? "" : ", ", size);
  return "[" + text + "]";
}

Folded fold(const OpEntry& entry, const TensorArgument& argument, const View& view) {
  constexpr size_t kMost = 16;
  const size_t rank = view.size.size(), declared = argument.field->dims.size();
  if (rank > kMost || (rank > declared && argument.lead < 0))
    fail(ErrorCode::kInvalidArgument, "[{}] {} is {} {}; must be [{}]", entry.op.name, argument.name,
         heddle::name(view.dtype), sizes_text(view.size), argument.field->dims_text);
  std::array<i64, kMost> dense;
  std::span<const i64> stride = view.stride;
  const bool has_none = std::ranges::find(view.size, 0) != view.size.end();
  if (stride.empty() || has_none) {  // the strides of a tensor without elements say nothing
    i64 step = 1;
    for (size_t d = rank; d-- > 0; step *= std::max<i64>(view.size[d], 1)) dense[d] = step;
    stride = {dense.data(), rank};
  }
  Folded folded;
  const bool folds = argument.lead >= 0 && rank + 1 >= declared && rank != declared;
  const size_t leading = folds ? rank + 1 - declared : rank == declared && argument.lead >= 0 ? 1 : 0;
  folded.leading = view.size.first(leading);
  if (folds) {
    folded.lies_as_rows = merge(folded.leading, stride.first(leading), folded.size[0], folded.stride[0]);
    folded.rank = 1;
  }
  for (size_t d = folds ? leading : 0; d < rank; ++d, ++folded.rank)
    folded.size[folded.rank] = view.size[d], folded.stride[folded.rank] = stride[d];
  if (folded.rank == 0) return folded;
  const size_t last = folded.rank - 1;
  if (folded.size[last] <= 1) folded.stride[last] = 1;
  i64 count = 1;
  for (size_t d = folded.rank; d-- > 0; count *= folded.size[d])
    if (folded.size[d] != 1 && folded.stride[d] != count) count = 0;
  folded.is_dense = count > 1;
  if (folded.stride[last] == 1) return folded;
  folded.is_transposed = argument.field->is_matrix() && last > 0 && folded.stride[last - 1] == 1;
  if (folded.is_transposed) {
    std::swap(folded.size[last - 1], folded.size[last]);
    std::swap(folded.stride[last - 1], folded.stride[last]);
  } else {
    folded.lies_as_rows = false;
  }
  return folded;
}

void bind_tensor(const OpEntry& entry, const TensorArgument& argument, const Folded& folded, const View& view,
                 const MemoryPlace& place, std::byte* args) {
  argument.field->tensor(args) = tensor_of(entry.op.name, argument.name, folded.ref(view), place);
  if (!argument.field->is_matrix()) return;
  const bool transposed = folded.is_transposed;
  std::memcpy(args + argument.field->transposed_at, &transposed, sizeof transposed);
}

void require_own_memory(const OpEntry& entry, const TensorArgument& output, const std::byte* args) {
  const Tensor& written = output.field->tensor(args);
  if (elements(written) == 0) return;
  const Range own = range_of(written);
  for (const auto* arguments : {&entry.inputs, &entry.outputs})
    for (const TensorArgument& other : *arguments) {
      const Tensor& tensor = other.field->tensor(args);
      if (&other == &output || tensor.rank == 0 || elements(tensor) == 0) continue;
      const Range range = range_of(tensor);
      if (range.end <= own.begin || own.end <= range.begin || are_other_columns(written, tensor)) continue;
      const bool may = arguments == &entry.inputs && entry.op.traits.in_place && same_place(written, tensor);
      require(may,
              "[{}] {} shares memory with {}; must have its own: leave out= away, or give another tensor",
              entry.op.name, output.name, other.name);
    }
}

}  // namespace heddle::python
