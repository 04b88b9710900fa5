// Calls of ops from Python.
#pragma once

#include <memory>
#include <string>

#include "heddle/tune/op_tuner.h"
#include "python/src/entry.h"
#include "python/src/kind.h"

namespace heddle::python {

// A call's arguments as the caller gave them, not yet read; borrowed.
struct Given {
  Few<PyObject*> inputs;      // by OpEntry::inputs; null: left out
  Few<PyObject*> attributes;  // by OpEntry::attributes; null: left out
  PyObject* out = nullptr;
};

// Sorts the arguments of a call. Throws Error for one that is missing, unknown or given twice.
Given sort_arguments(const OpEntry& entry, PyObject* const* args, Py_ssize_t count, PyObject* names);

// The end of a call that torch.autocast may take over.
struct Outcome {
  enum class Kind : u8 {
    kRan,
    kWantsAutocast,  // nothing ran: torch.autocast converts the inputs first
  };

  Kind kind;
  Object result;  // null unless the call ran
};

// Runs the op on the tensors themselves, which must be memory, whether or not torch.autocast is on.
Object run_op(OpEntry& entry, const Given& given);

// Runs it in the same way, unless torch.autocast wants to convert the inputs first.
Outcome run_unless_autocast(OpEntry& entry, const Given& given);

// Calls it by whichever way the call must take, as heddle.ops has it.
Object call_op(OpEntry& entry, const Given& given);

// Returns how the last call of this thread ran.
struct Path {
  struct Body {
    std::string name, why_no_kernel;
  };

  const Body* body = nullptr;      // null: not on a GPU
  const OpEntry* entry = nullptr;  // null: there was none
  bool reference = false, empty = false;
  MemoryPlace place;
  int copies = 0;  // inputs that did not lie as rows, and were copied first
  int threads = 0;
  const char* gradient = "";  // "node" or "python" where one was wanted, by what torch has of it
  std::shared_ptr<const tune::TunedConfig> tuned;  // null: the op's default configuration
};
Path& last_path();

// A function of Python that calls the op: as heddle.ops has it, or as a kernel of torch's dispatcher, which has looked at
// gradients, modes and subclasses already.
PyObject* op_function(OpEntry& entry, bool is_kernel);
// Makes it as torch.ops.heddle has it. `registered`: what calls the op by torch's dispatcher.
PyObject* packet_function(OpEntry& entry, PyObject* registered);
// Makes it as the kernel of torch's Autograd key. `in_python`: the kernel for calls that something looks at.
PyObject* autograd_function(OpEntry& entry, PyObject* in_python);

}  // namespace heddle::python
