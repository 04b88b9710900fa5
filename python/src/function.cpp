// Ops as functions of Python, called without a tuple or a dict.
#include "python/src/arguments.h"
#include "python/src/document.h"
#include "python/src/gradient.h"
#include "python/src/ranges.h"
#include "python/src/torch_route.h"

namespace heddle::python {
namespace {

constexpr const char* kCapsule = "heddle.op";

struct Function {
  OpEntry& entry;
  PyMethodDef method;
  PyObject* registered;  // torch's own way to the op; null: not needed
};

const Function& function_in(PyObject* capsule) {
  return *static_cast<Function*>(PyCapsule_GetPointer(capsule, kCapsule));
}

OpEntry& entry_in(PyObject* capsule) {
  return function_in(capsule).entry;
}

PyObject* call_with(PyObject* function, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  const Py_ssize_t named = names ? PyTuple_Size(names) : 0;
  const Object positional = owned(PyTuple_New(count)), keywords = owned(PyDict_New());
  for (Py_ssize_t i = 0; i < count; ++i) {
    Py_INCREF(args[i]);
    PyTuple_SetItem(positional.get(), i, args[i]);
  }
  for (Py_ssize_t i = 0; i < named; ++i)
    if (PyDict_SetItem(keywords.get(), PyTuple_GetItem(names, i), args[count + i])) throw PythonError{};
  return owned(PyObject_Call(function, positional.get(), keywords.get())).release();
}

bool asks_for_dim(const OpEntry& entry, Py_ssize_t count, PyObject* names) {
  if (!entry.over_dim) return false;
  if (size_t(count) > entry.inputs.size()) return true;
  const Py_ssize_t named = names ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < named; ++i)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, i), "dim") == 0) return true;
  return false;
}

PyObject* call(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    OpEntry& entry = entry_in(self);
    if (asks_for_dim(entry, count, names)) return call_with(entry.over_dim, args, count, names);
    const Given given = sort_arguments(entry, args, count, names);
    return call_op(entry, given).release();
  });
}

PyObject* call_kernel(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    OpEntry& entry = entry_in(self);
    const Given given = sort_arguments(entry, args, count, names);
    require_no_gradient(
        entry, given,
        fmt::format("torch.ops.heddle.{} has none; call heddle.ops.{}", entry.op.name, entry.op.name));
    return run_op(entry, given).release();
  });
}

// A call of torch.ops.heddle.x on plain tensors that nobody watches goes past torch's dispatcher, which takes longer than all
// else of a short call, and has the node that heddle.ops.x has. Any other is the dispatcher's, and so is what is wrong with it.
PyObject* call_past_dispatcher(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    const Function& function = function_in(self);
    try {
      const Given given = sort_arguments(function.entry, args, count, names);
      const CallRange range(function.entry);
      const Route route = given.out ? Route::kDispatch : route_of_torch(given);
      if (route == Route::kGradient) return call_with_gradient(function.entry, given);
      if (route == Route::kDirect) {
        Outcome outcome = run_unless_autocast(function.entry, given);
        if (outcome.kind == Outcome::Kind::kRan) return outcome.result.release();
      }
    } catch (const Error&) {
    }
    return call_with(function.registered, args, count, names);
  });
}

// The kernel of torch's Autograd key, whose first argument has the dispatcher's keys. Where nothing watches and no gradient
// is wanted the op runs at once; Python's form, `registered`, goes on in the dispatcher.
PyObject* call_autograd(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    const Function& function = function_in(self);
    const Given given = sort_arguments(function.entry, args + 1, count - 1, names);
    try {
      if (route_of(given) == Route::kDirect) return run_op(function.entry, given).release();
    } catch (const NotMemory&) {
    }
    return call_with(function.registered, args, count, names);
  });
}

using Call = PyObject*(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);

PyObject* function_of(OpEntry& entry, Call* way, PyObject* registered) {
  if (entry.doc.empty()) entry.doc = entry.op.name + entry.signature() + "\n--\n\n" + document_of(entry);
  auto* const function = new Function{entry, {}, registered};  // lives as long as the process, as ops do
  function->method = {.ml_name = entry.op.name.c_str(),
                      .ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(way)),
                      .ml_flags = METH_FASTCALL | METH_KEYWORDS,
                      .ml_doc = entry.doc.c_str()};
  const Object self = owned(PyCapsule_New(function, kCapsule, nullptr));
  const Object module = owned(PyUnicode_InternFromString("heddle.ops"));
  return owned(PyCFunction_NewEx(&function->method, self.get(), module.get())).release();
}

}  // namespace

Object call_op(OpEntry& entry, const Given& given) {
  const CallRange range(entry);
  const Route route = route_of(given);
  try {
    if (route == Route::kGradient) return owned(call_with_gradient(entry, given));
    if (route != Route::kDirect) return owned(call_torch(entry, given, route));
    Outcome outcome = run_unless_autocast(entry, given);
    if (outcome.kind == Outcome::Kind::kRan) return std::move(outcome.result);
    return owned(call_torch(entry, given, Route::kAutocast));
  } catch (const NotMemory&) {
    return owned(call_torch(entry, given, Route::kDispatch));
  }
}

PyObject* op_function(OpEntry& entry, bool is_kernel) {
  return function_of(entry, is_kernel ? call_kernel : call, nullptr);
}

PyObject* packet_function(OpEntry& entry, PyObject* registered) {
  Py_INCREF(registered);
  return function_of(entry, call_past_dispatcher, registered);
}

PyObject* autograd_function(OpEntry& entry, PyObject* in_python) {
  Py_INCREF(in_python);
  return function_of(entry, call_autograd, in_python);
}

}  // namespace heddle::python
