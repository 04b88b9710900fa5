// The cases of an op (x_cases.cpp), for tests in Python, and as examples of right shapes.
#pragma once

#include "python/src/entry.h"

namespace heddle::python {

// [{"name", "bound", "tensors": {argument: (dtype, sizes, is_transposed)}, "attributes": {name: value}}]
nanobind::list cases_of(const OpEntry& entry);

// Puts values that the case asks for into the tensors of its inputs, {argument: tensor}, which have other values already.
void prepare_case(const OpEntry& entry, size_t number, const nanobind::dict& tensors);

// The dtypes that the op gives its outputs for such dtypes of its inputs, in their order and by their names; None for an
// input that is left out. The op's rules are asked with shapes of its cases. Throws Error where none of these is right.
nanobind::list output_dtypes(const OpEntry& entry, const nanobind::list& inputs,
                             const nanobind::dict& choices);

// (dtype, sizes) of each output for inputs (dtype, sizes, strides), or None. Leading dimensions are one. Throws Error as a call would.
nanobind::list output_forms(const OpEntry& entry, const nanobind::list& inputs,
                            const nanobind::dict& attributes);

}  // namespace heddle::python
