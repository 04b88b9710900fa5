// Asks torch about all but memory: gradients, modes that record or fake calls, versions of tensors. All of it
// is asked through Python's objects, or functions that are found by their symbols, so that nothing here links
// to torch.
#pragma once

#include "python/src/call.h"

namespace heddle::python {

enum class Route : u8 {
  kDirect,    // plain memory, and nobody watches
  kDispatch,  // something wants to see the call, or the tensor is no memory: torch's dispatcher takes it
  kGradient,  // a gradient is wanted
  kAutocast,  // torch.autocast converts the inputs; run_op finds it
};
Route route_of(const Given& given);

// Returns the same where all tensors are torch's, and kDispatch where one is another library's.
Route route_of_torch(const Given& given);

// Hands the call to heddle.torch.
PyObject* call_torch(OpEntry& entry, const Given& given, Route route);

// True for an object that takes functions of tensors without being one, as a Proxy of torch.fx.
bool takes_functions(PyObject* object);

// Throws Error for a subclass that handles calls itself, and may have no memory.
void require_plain_memory(const Argument& argument, PyObject* tensor);
void trust_subclasses(bool trust);  // leaves that out, for a test of what it keeps away
bool wants_gradient(PyObject* tensor, bool is_exact = false);  // `is_exact`: it is of no subclass
void require_no_gradient(std::string_view op, PyObject* output);
// Throws Error where an input wants a gradient, for a call that would lose it. `why`: "it has none; do that instead".
void require_no_gradient(const OpEntry& entry, const Given& given, std::string_view why);
void increment_version(PyObject* tensor);
// True for a view whose elements torch negates when it reads them. It shows the half of a complex tensor, so that it is
// never dense.
bool is_negated(PyObject* tensor);
int torch_threads();
bool is_any_autocast_enabled();  // for any kind of device

}  // namespace heddle::python
