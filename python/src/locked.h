// The interpreter's lock, for code that may be called without it.
#pragma once

#include <Python.h>

namespace heddle::python {

// Holds the interpreter while it lives.
class Locked {
 public:
  Locked() : state_(PyGILState_Ensure()) {}
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  const PyGILState_STATE state_;
};

}  // namespace heddle::python
