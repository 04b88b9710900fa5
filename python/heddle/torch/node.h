// The interface of heddle's module and the library of its autograd node, in C's types alone. The library is compiled
// against the torch that is there (node.py), so that the module links to none.
#pragma once

#include <cstdint>

using PyObject = struct _object;

namespace heddle::python {

constexpr int kNodeVersion = 1;  // this file's

// A differentiable op; it lives as long as the process.
struct NodeOp {
  const char* name;  // names its nodes
  int32_t inputs, outputs, attributes, saved;
  const int32_t* places;  // numbers of the inputs, and of outputs after those, that the backward reads
};

// The shape that a gradient must have, and its dtype as DLPack has it.
struct NodeForm {
  const int64_t* size;
  int32_t rank;
  uint8_t code, bits;
};

// A backward. Tensors are borrowed; null stands for one that there is not.
struct NodeBackward {
  const NodeOp* op;
  PyObject *const *saved, *const *attributes;
  PyObject* const* grads;  // by output
  uint32_t needs;          // bit i: input i needs a gradient
  const NodeForm* forms;   // by input; null: something looks on that follows no `out`
  PyObject** made;         // by input: new references, as the ops give them
};

// Given to the library. The caller holds the interpreter's lock; -1: Python has an exception.
struct NodeHost {
  int (*backward)(const NodeBackward& call);
};

// Given by the library, under the same rule.
struct NodeTable {
  // True for plain memory, and where nothing of torch but autograd looks at calls.
  bool (*takes)(PyObject* const* inputs, int32_t count);
  // Has the outputs of a call, which are new, know their gradient.
  int (*attach)(const NodeOp& op, PyObject* const* inputs, PyObject* const* outputs,
                PyObject* const* attributes);
};

}  // namespace heddle::python

// Null where the versions differ.
extern "C" const heddle::python::NodeTable* heddle_node(const heddle::python::NodeHost* host, int version);
