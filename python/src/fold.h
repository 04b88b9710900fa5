// A caller's tensor in the form that an op takes it: leading dimensions folded into one.
#pragma once

#include <array>

#include "python/src/entry.h"
#include "python/src/kind.h"

namespace heddle::python {

struct Folded {
  std::array<i64, kMaxRank> size = {}, stride = {};
  size_t rank = 0;
  std::span<const i64> leading;  // the sizes that were folded
  // False: its leading dimensions are no regular rows, or elements of a row do not lie side by side.
  bool lies_as_rows = true;
  bool is_dense = false;       // several elements, and no gaps
  bool is_transposed = false;  // a matrix whose columns are contiguous

  TensorRef ref(const View& view) const {
    return {view.data, view.dtype, {size.data(), rank}, {stride.data(), rank}, view.place};
  }
};

// Throws Error for a tensor that has more dimensions than the op's argument can take.
Folded fold(const OpEntry& entry, const TensorArgument& argument, const View& view);

// Puts it into the arguments. Throws Error where it is in another place than the call.
void bind_tensor(const OpEntry& entry, const TensorArgument& argument, const Folded& folded, const View& view,
                 const MemoryPlace& place, std::byte* args);

std::string sizes_text(std::span<const i64> sizes);

// Throws Error where an output shares memory with another tensor of the call, unless the op allows it.
void require_own_memory(const OpEntry& entry, const TensorArgument& output, const std::byte* args);

}  // namespace heddle::python
