// An op as Python calls it: its tensors and attributes in the order of its fields, with their names in Python.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "heddle/ir/call/op_call.h"
#include "python/src/object.h"

namespace heddle::python {

struct Differentiable;  // gradient.cpp

constexpr size_t kMostArgs = 2048;  // bytes of an op's arguments

struct TensorArgument {
  const Field* field = nullptr;
  std::string name;         // "b.scales" is b_scales
  PyObject* key = nullptr;  // the name, interned
  // Its first dimension takes all leading dimensions of what the caller gives, because that name is nowhere but first in the
  // op's tensors. Tensors with one number have their leading dimensions in common. -1: it takes none.
  int lead = -1;
};

struct AttributeArgument {
  const Field* field = nullptr;
  PyObject* key = nullptr;
  bool required = false;  // its default, 0, is refused: a call must give it
};

// The way torch.autocast treats a call's inputs.
enum class Autocast : u8 {
  kNothing,
  kLower,  // they get its dtype: products
  kF32,    // on a GPU they become f32; on a CPU torch leaves such ops alone
};

struct OpEntry {
  explicit OpEntry(const OpSpec& op);

  const OpSpec& op;
  std::vector<TensorArgument> inputs, outputs;
  std::vector<AttributeArgument> attributes;
  int leads = 0;
  Autocast autocast = Autocast::kNothing;
  const Field* ignored =
      nullptr;          // the attribute that says which target is none; null: no input names columns
  std::string why_not;  // why it cannot be called by itself, and what to use; empty: it can
  std::string doc;      // with the signature in the form that `inspect` reads; made with the first function
  std::atomic<bool> use_reference = false;  // in all threads
  bool is_own = false;                      // Python declared it, so that no other library knows it
  PyObject* over_dim = nullptr;             // what calls with `dim` come to; null: the op takes none
  PyObject* gradient_call = nullptr;  // calls the op where a gradient is wanted; null: not asked for yet
  Differentiable* differentiable = nullptr;  // null: no gradient was asked for yet
  std::function<void()> prepare_host;        // makes the body for calls on the host; empty: it is there

  // Called before a call, or a program, on memory of `place`; holds the interpreter.
  void prepare(const MemoryPlace& place) const {
    if (prepare_host && place.kind != MemoryPlace::Kind::kGpu) prepare_host();
  }

  // Before a function of the op is made, whose help says so. What is given lives as long as the process.
  void set_over_dim(PyObject* function);

  std::string signature() const;  // "(x, weight, *, eps=1e-05, out=None)"
};

// An attribute as Python writes it: 'silu', True, 1e-05.
std::string value_text(const Field& field, const std::byte* args);

// The backend of one call, which its thread alone is to see.
struct ForcedBackend {
  const OpEntry* entry = nullptr;  // null: none
  bool reference = false;
};
ForcedBackend& forced_backend();  // this thread's
bool uses_reference(const OpEntry& entry);

// The ops of the registry, in its order.
std::deque<OpEntry>& entries();
OpEntry& entry_of(std::string_view name);  // throws Error

}  // namespace heddle::python
