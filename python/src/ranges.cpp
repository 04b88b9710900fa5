#include "python/src/ranges.h"

namespace heddle::python {

namespace nb = nanobind;

Ranges ranges;

void CallRange::begin(const OpEntry& entry) {
  const Object name = owned(PyUnicode_FromString(("heddle." + entry.op.name).c_str()));
  owned(PyObject_CallFunctionObjArgs(ranges.begin, name.get(), nullptr));
}

// A call that failed keeps its own exception.
void CallRange::end() const noexcept {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  Py_XDECREF(PyObject_CallFunctionObjArgs(end_, nullptr));
  if (PyErr_Occurred()) PyErr_WriteUnraisable(end_);
  PyErr_Restore(type, value, trace);
}

void add_ranges(nb::module_& module) {
  // Functions are never released, because a call of another thread may be between them.
  module.def(
      "set_ranges",
      [](nb::object begin, nb::object end) {
        const bool watched = !begin.is_none();
        ranges = {watched ? begin.release().ptr() : nullptr, watched ? end.release().ptr() : nullptr};
      },
      nb::arg("begin").none(), nb::arg("end").none());
  module.def("has_ranges", [] { return ranges.end != nullptr; });
}

}  // namespace heddle::python
