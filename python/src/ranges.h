// Names of calls for profilers that show ranges, such as Nsight Systems: two functions of Python begin and end one.
#pragma once

#include <nanobind/nanobind.h>

#include "python/src/entry.h"

namespace heddle::python {

// The functions that begin a range of a name and end it; null: nobody watches. The interpreter's lock guards
// them.
struct Ranges {
  PyObject *begin = nullptr, *end = nullptr;
};
extern Ranges ranges;

void add_ranges(nanobind::module_& module);

// The range of a call, where somebody watches.
class CallRange {
 public:
  explicit CallRange(const OpEntry& entry) : end_(ranges.end) {
    if (end_) [[unlikely]]
      begin(entry);
  }
  ~CallRange() {
    if (end_) [[unlikely]]
      end();
  }
  CallRange(const CallRange&) = delete;
  CallRange& operator=(const CallRange&) = delete;

 private:
  static void begin(const OpEntry& entry);
  void end() const noexcept;

  PyObject* const end_;  // the one that was set at the beginning: others may be set meanwhile
};

}  // namespace heddle::python
