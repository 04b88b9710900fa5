// Ops as functions of Python, called without a tuple or a dict.
#include "python/src/call.h"
#include "python/src/torch_route.h"

namespace heddle::python {
namespace {

constexpr const char* kCapsule = "heddle.op";

struct Function {
  OpEntry& entry;
  PyMethodDef method;
};

OpEntry& entry_in(PyObject* capsule) {
  return static_cast<Function*>(PyCapsule_GetPointer(capsule, kCapsule))->entry;
}

PyObject* call(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    OpEntry& entry = entry_in(self);
    const Given given = sort_arguments(entry, args, count, names);
    const Route route = route_of(given);
    if (route != Route::kDirect) return call_torch(entry, given, route);
    try {
      if (Object result = run_op(entry, given, true)) return result.release();
      return call_torch(entry, given, Route::kAutocast);
    } catch (const NotMemory&) {
      return call_torch(entry, given, Route::kDispatch);
    }
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

}  // namespace

PyObject* op_function(OpEntry& entry, bool is_kernel) {
  auto* const function = new Function{entry, {}};  // lives as long as the process, as ops do
  function->method = {
      .ml_name = entry.op.name.c_str(),
      .ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(is_kernel ? call_kernel : call)),
      .ml_flags = METH_FASTCALL | METH_KEYWORDS,
      .ml_doc = entry.doc.c_str()};
  const Object self = owned(PyCapsule_New(function, kCapsule, nullptr));
  const Object module = owned(PyUnicode_InternFromString("heddle.ops"));
  return owned(PyCFunction_NewEx(&function->method, self.get(), module.get())).release();
}

}  // namespace heddle::python
