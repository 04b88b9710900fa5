// Progress of C++ work, for a function of Python.
#pragma once

#include <string>
#include <utility>

#include "heddle/base/progress.h"
#include "heddle/base/stopwatch.h"
#include "python/src/call.h"

namespace heddle::python {

// Tells a function of Python how far some work is, and ends the work where it raises or Ctrl-C was pressed. Called without
// the interpreter's lock.
class Teller {
 public:
  explicit Teller(nanobind::object function) : function_(std::move(function)) {}

  void tell(const ::heddle::Progress& progress) {
    const std::string words = words_.of(progress, watch_.seconds());
    const nanobind::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw PythonError{};
    if (function_.is_none()) return;
    try {
      function_(text(progress.doing), text(progress.what), progress.done, progress.all, text(words));
    } catch (nanobind::python_error& error) {
      error.restore();
      throw PythonError{};
    }
  }

 private:
  const nanobind::object function_;  // or None
  ProgressText words_;
  Stopwatch watch_;
};

}  // namespace heddle::python
