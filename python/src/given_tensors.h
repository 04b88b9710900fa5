// Tensors of Python by name, as a model reads them.
#pragma once

#include <memory>
#include <string>

#include "heddle/model/hf/caller_tensors.h"
#include "python/src/kind.h"

namespace heddle::python {

// `pairs`: a sequence of (name, tensor). The tensors are read where they lie, so that `kept` and the objects must live until
// that is done. Throws Error, which `where` begins, for what is no whole tensor in memory.
std::shared_ptr<CallerTensors> given_tensors(nanobind::handle pairs, const std::string& where, Kept& kept);

}  // namespace heddle::python
