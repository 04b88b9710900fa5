// Integers of a call that name columns, as the targets of a loss do.
#pragma once

#include "python/src/entry.h"

namespace heddle::python {

// Throws Error for a target that is neither ignored nor a column of the op's first input. The arguments lie in the host's
// memory. It looks at one integer a row, where the op itself reads all columns.
void require_columns(const OpEntry& entry, const std::byte* args);

}  // namespace heddle::python
