#include "python/src/torch_route.h"

#include <dlfcn.h>

#include "heddle/base/error.h"

namespace heddle::python {
namespace {

// A function of torch of one argument or none. One that is written in C is called where it is: a call by the interpreter
// costs 20 ns more.
class Question {
 public:
  // `form`: how it is written where it may be called so, METH_NOARGS or METH_O.
  explicit Question(PyObject* function, int form = METH_NOARGS) : object_(function) {
    if (!PyCFunction_Check(function) || PyCFunction_GetFlags(function) != form) return;
    function_ = PyCFunction_GetFunction(function), self_ = PyCFunction_GetSelf(function);
  }
  Object operator()() const {
    return owned(function_ ? function_(self_, nullptr) : PyObject_CallNoArgs(object_));
  }
  Object operator()(PyObject* argument) const {
    return owned(function_ ? function_(self_, argument)
                           : PyObject_CallFunctionObjArgs(object_, argument, nullptr));
  }

 private:
  PyObject* const object_;
  PyCFunction function_ = nullptr;
  PyObject* self_ = nullptr;
};

// An attribute of a class that is written in C, read without a search for its name: 10 ns less.
class Getter {
 public:
  Getter(PyObject* type, const char* name)
      : descriptor_(owned(PyObject_GetAttrString(type, name)).release()),
        get_(reinterpret_cast<descrgetfunc>(PyType_GetSlot(Py_TYPE(descriptor_), Py_tp_descr_get))) {}
  Object operator()(PyObject* object) const {
    return owned(get_(descriptor_, object, reinterpret_cast<PyObject*>(Py_TYPE(object))));
  }

 private:
  PyObject* const descriptor_;
  const descrgetfunc get_;
};

// A number that a module of torch has in a variable.
class Variable {
 public:
  Variable(const char* module, const char* name)
      : names_(PyModule_GetDict(imported_module(module))), name_(PyUnicode_InternFromString(name)) {}
  // `otherwise`: where this torch has no such variable.
  long value(long otherwise) const {
    PyObject* const value = PyDict_GetItem(names_, name_);  // borrowed
    return value ? PyLong_AsLong(value) : otherwise;
  }

 private:
  PyObject *const names_, *const name_;
};

// A function of torch's C++ without arguments, whose result is a number. Called by its symbol it takes 10 to 25 ns less than
// by the function that Python has, which is called where there is no such symbol.
template <class Result>
class Fact {
 public:
  Fact(const char* symbol, PyObject* function) : question_(function) {
    void* const library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
    if (library) native_ = reinterpret_cast<Result (*)()>(dlsym(library, symbol));
  }
  i64 operator()() const {
    if (!native_) return PyLong_AsLong(question_().get());
    if constexpr (std::is_pointer_v<Result>)
      return *native_() != nullptr;
    else
      return i64(native_());
  }

 private:
  const Question question_;
  Result (*native_)() = nullptr;
};

// Functions and names of torch, found at the first tensor of torch.
struct Torch {
  const Object module_c = owned(PyObject_GetAttrString(imported_module("torch"), "_C"));
  const Question autocast{in_c("_is_any_autocast_enabled")}, threads{in_torch("get_num_threads")};
  const Fact<i64> modes{"_ZN3c104impl20TorchDispatchModeTLS9stack_lenEv", in_c("_len_torch_dispatch_stack")};
  const Fact<i64> function_modes{"_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv",
                                 in_c("_len_torch_function_stack")};
  const Fact<bool> is_grad_enabled{"_ZN3c108GradMode10is_enabledEv", in_torch("is_grad_enabled")};
  const Fact<bool> is_profiled{
      "_ZN5torch8profiler4impl15profilerEnabledEv",
      owned(PyObject_GetAttrString(owned(in_torch("autograd")).get(), "_profiler_enabled")).release()};
  // It returns a reference to a std::shared_ptr, whose first word is the pointer.
  const Fact<void* const*> is_tracing{"_ZN5torch3jit6tracer15getTracingStateEv", in_c("_is_tracing")};
  const Variable forward_level{"torch.autograd.forward_ad", "_current_level"};
  const Question increment_version{in_c("_increment_version"), METH_O};
  const Getter requires_grad_of_tensor{owned(in_torch("Tensor")).get(), "requires_grad"};
  PyObject* const requires_grad = PyUnicode_InternFromString("requires_grad");
  PyObject* const torch_dispatch = PyUnicode_InternFromString("__torch_dispatch__");
  PyObject* const dispatch_of_tensor =
      owned(PyObject_GetAttr(owned(in_torch("Tensor")).get(), torch_dispatch)).release();

 private:
  PyObject* in_c(const char* name) const {
    return owned(PyObject_GetAttrString(module_c.get(), name)).release();
  }
  static PyObject* in_torch(const char* name) {
    return owned(PyObject_GetAttrString(imported_module("torch"), name)).release();
  }
};

const Torch& torch() {
  static Torch* found = nullptr;
  return kept_forever(found, [] { return new Torch; });
}

bool is_true(Object value) {
  return PyObject_IsTrue(value.get()) == 1;
}

bool trusts_subclasses = false;

// True where something of torch looks at calls: a mode, a profiler, a trace of torch.jit, or the forward mode of autograd,
// whose level is -1 outside of it.
bool is_watched() {
  const Torch& t = torch();
  return t.modes() || t.function_modes() || t.is_tracing() || t.is_profiled() ||
         t.forward_level.value(-1) >= 0;
}

bool has_tangent(PyObject* tensor) {
  if (torch().forward_level.value(-1) < 0) return false;
  const Object dual =
      owned(PyObject_CallMethod(imported_module("torch.autograd.forward_ad"), "unpack_dual", "O", tensor));
  return owned(PyObject_GetAttrString(dual.get(), "tangent")).get() != Py_None;
}

bool is_of_torch(PyObject* tensor) {
  const Kind* const kind = kind_of(tensor);
  return kind && kind->library == Kind::Library::kTorch;
}

}  // namespace

bool wants_gradient(PyObject* tensor, bool is_exact) {
  return is_true(is_exact ? torch().requires_grad_of_tensor(tensor)
                          : owned(PyObject_GetAttr(tensor, torch().requires_grad)));
}

Route route_of(const Given& given) {
  bool is_torch = false, is_exact = true;
  for (PyObject* tensor : given.inputs) {
    const Kind* const kind = tensor ? kind_of(tensor) : nullptr;
    if (!kind || kind->library != Kind::Library::kTorch) continue;
    is_torch = true;
    is_exact = is_exact && kind->is_exact;
  }
  if (!is_torch) return Route::kDirect;
  if (!is_exact || is_watched()) return Route::kDispatch;
  for (PyObject* tensor : given.inputs)
    if (tensor && is_of_torch(tensor) && wants_gradient(tensor, true))
      return torch().is_grad_enabled() ? Route::kGradient : Route::kDirect;
  return Route::kDirect;
}

Route route_of_torch(const Given& given) {
  for (PyObject* tensor : given.inputs) {
    const Kind* const kind = tensor ? kind_of(tensor) : nullptr;
    if (tensor && (!kind || kind->library != Kind::Library::kTorch)) return Route::kDispatch;
  }
  return route_of(given);
}

PyObject* call_torch(OpEntry& entry, const Given& given, Route route) {
  static PyObject* found = nullptr;
  PyObject* const module =
      &kept_forever(found, [] { return owned(PyImport_ImportModule("heddle.torch")).release(); });
  const Object inputs = owned(PyTuple_New(Py_ssize_t(given.inputs.size())));
  const auto or_none = [](PyObject* object) {
    object = object ? object : Py_None;
    Py_INCREF(object);
    return object;
  };
  for (size_t i = 0; i < given.inputs.size(); ++i)
    PyTuple_SetItem(inputs.get(), Py_ssize_t(i), or_none(given.inputs[i]));
  const Object attributes = owned(PyDict_New());
  for (size_t i = 0; i < given.attributes.size(); ++i)
    if (given.attributes[i] && PyDict_SetItem(attributes.get(), entry.attributes[i].key, given.attributes[i]))
      throw PythonError{};
  if (route == Route::kGradient) {
    require(!given.out,
            "[{}] out is given, and an input requires a gradient; leave out= away, or use torch.no_grad()",
            entry.op.name);
    PyObject* const call = &kept_forever(entry.gradient_call, [&] {
      return owned(PyObject_CallMethod(module, "gradient_call_of", "s", entry.op.name.c_str())).release();
    });
    return PyObject_CallFunctionObjArgs(call, inputs.get(), attributes.get(), nullptr);
  }
  const Object out(or_none(given.out));
  const Object call =
      owned(PyObject_GetAttrString(module, route == Route::kAutocast ? "call_with_autocast" : "call"));
  return PyObject_CallFunction(call.get(), "sOOO", entry.op.name.c_str(), inputs.get(), attributes.get(),
                               out.get());
}

bool takes_functions(PyObject* object) {
  const Object method(
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__torch_function__"));
  if (!method) PyErr_Clear();
  return bool(method);
}

void trust_subclasses(bool trust) {
  trusts_subclasses = trust;
}

void require_plain_memory(const Argument& argument, PyObject* tensor) {
  if (trusts_subclasses) return;
  const Object own =
      owned(PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(tensor)), torch().torch_dispatch));
  if (own.get() != torch().dispatch_of_tensor)
    fail(ErrorCode::kInvalidArgument,
         "[{}] {} is a {}, which is no memory by itself; call heddle.ops.{} or torch.ops.heddle.{}",
         argument.op, argument.name, type_name(tensor), argument.op, argument.op);
}

void require_no_gradient(std::string_view op, PyObject* output) {
  require(!wants_gradient(output, kind_of(output)->is_exact) || !torch().is_grad_enabled(),
          "[{}] out requires a gradient, and a write to it has none; leave out= away, or use torch.no_grad()",
          op);
  if (has_tangent(output))
    fail(ErrorCode::kUnsupported, "[{}] out has a tangent, and a write to it has none; leave out= away", op);
}

void require_no_gradient(const OpEntry& entry, const Given& given, std::string_view why) {
  for (size_t i = 0; i < given.inputs.size(); ++i) {
    PyObject* const input = given.inputs[i];
    if (!input) continue;
    if (wants_gradient(input))
      require(!torch().is_grad_enabled(), "[{}] {} requires a gradient, and {}", entry.op.name,
              entry.inputs[i].name, why);
    if (has_tangent(input))
      fail(ErrorCode::kUnsupported,
           "[{}] {} has a tangent, and heddle's ops have no derivatives in forward mode", entry.op.name,
           entry.inputs[i].name);
  }
}

void increment_version(PyObject* tensor) {
  const Object tensors = owned(PyTuple_Pack(1, tensor));
  const Object done = torch().increment_version(tensors.get());
}

bool is_negated(PyObject* tensor) {
  return is_true(owned(PyObject_CallMethod(tensor, "is_neg", nullptr)));
}

bool is_any_autocast_enabled() {
  return is_true(torch().autocast());
}

int torch_threads() {
  const Object threads = torch().threads();
  return int(PyLong_AsLong(threads.get()));
}

}  // namespace heddle::python
