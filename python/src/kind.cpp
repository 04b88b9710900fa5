#include "python/src/kind.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "heddle/base/error.h"

namespace heddle::python {
namespace {

struct NamedType {
  DLDataType dlpack;
  DType dtype;
};
constexpr NamedType kTypes[] = {
    {{kDLFloat, 32, 1}, DType::kF32},        {{kDLFloat, 16, 1}, DType::kF16},
    {{kDLBfloat, 16, 1}, DType::kBf16},      {{kDLInt, 32, 1}, DType::kI32},
    {{kDLUInt, 8, 1}, DType::kU8},           {{kDLFloat8E4M3FN, 8, 1}, DType::kF8E4M3},
    {{kDLFloat8E5M2, 8, 1}, DType::kF8E5M2}, {{kDLInt, 8, 1}, DType::kI8},
    {{kDLInt, 64, 1}, DType::kI64},          {{kDLBool, 8, 1}, DType::kBool},
};

DType dtype_of(const Argument& argument, const DLDataType& type) {
  for (const NamedType& named : kTypes)
    if (named.dlpack.code == type.code && named.dlpack.bits == type.bits && type.lanes == 1)
      return named.dtype;
  const bool is_f64 = type.code == kDLFloat && type.bits == 64;
  fail(ErrorCode::kInvalidArgument,
       "[{}] {} has {}; heddle's tensors are float32, float16, bfloat16, int32 or what the op names: convert "
       "it first",
       argument.op, argument.name,
       is_f64 ? "dtype float64" : fmt::format("a dtype of {} bits that heddle lacks", int(type.bits)));
}

MemoryPlace place_of(const Argument& argument, const DLDevice& device) {
  switch (device.device_type) {
    case kDLCPU:
      return {MemoryPlace::Kind::kHost, 0};
    case kDLCUDA:
    case kDLCUDAManaged:
      return {MemoryPlace::Kind::kGpu, device.device_id};
    case kDLCUDAHost:
      return {};
    default:
      fail(ErrorCode::kInvalidArgument,
           "[{}] {} is on a device of DLPack's type {}; must be on a CPU or a "
           "CUDA device",
           argument.op, argument.name, device.device_type);
  }
}

DLDevice dlpack_device(const MemoryPlace& place) {
  return place.kind == MemoryPlace::Kind::kGpu ? DLDevice{kDLCUDA, place.device} : DLDevice{kDLCPU, 0};
}

// Takes Python's exception, and returns what it says in a line. Ctrl-C stays one.
std::string taken_reason() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (type && !PyErr_GivenExceptionMatches(type, PyExc_Exception)) {
    PyErr_Restore(type, value, trace);
    throw PythonError{};
  }
  const Object kept_type(type), kept_value(value), kept_trace(trace);
  const std::string reason = value ? text_of(value) : "no reason given";
  return reason.substr(0, reason.find('\n'));
}

[[noreturn]] void fail_with_python(const Argument& argument, const char* what) {
  fail(ErrorCode::kInvalidArgument, "[{}] {} cannot be {}: {}", argument.op, argument.name, what,
       taken_reason());
}

// Any library, by the method that the protocol has for Python.
class ProtocolKind : public Kind {
 public:
  using Kind::Kind;

  View read(const Argument& argument, PyObject* tensor, Kept& kept) const override {
    static PyObject* const method = PyUnicode_InternFromString("__dlpack__");
    static PyObject* const keywords = Py_BuildValue("{s:(ii)}", "max_version", 1, 0);
    static PyObject* const none = PyTuple_New(0);
    const Object call(PyObject_GetAttr(tensor, method));
    if (!call) fail_with_python(argument, "read");
    Object capsule(PyObject_Call(call.get(), none, keywords));
    if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {  // a library older than versions
      PyErr_Clear();
      capsule = Object(PyObject_CallNoArgs(call.get()));
    }
    if (!capsule) fail_with_python(argument, "read");
    View view;
    if (PyCapsule_IsValid(capsule.get(), "dltensor_versioned")) {
      const auto* const managed = static_cast<const DLManagedTensorVersioned*>(
          PyCapsule_GetPointer(capsule.get(), "dltensor_versioned"));
      view = view_of(argument, managed->dl_tensor);
      view.read_only = managed->flags & kDLReadOnly;
    } else {
      const auto* const managed =
          static_cast<const DLManagedTensor*>(PyCapsule_GetPointer(capsule.get(), "dltensor"));
      if (!managed) fail_with_python(argument, "read");
      view = view_of(argument, managed->dl_tensor);
    }
    kept.push_back(std::move(capsule));
    return view;
  }

  Object make(const Argument& argument, DType, std::span<const i64>, const MemoryPlace&,
              void*&) const override {
    fail(ErrorCode::kInvalidArgument,
         "[{}] {} is not given, and heddle makes only tensors of NumPy and torch: give out=", argument.op,
         argument.name);
  }
};

Object sizes_of(std::span<const i64> size) {
  Object sizes = owned(PyTuple_New(Py_ssize_t(size.size())));
  for (size_t d = 0; d < size.size(); ++d)
    PyTuple_SetItem(sizes.get(), Py_ssize_t(d), owned(PyLong_FromLongLong(size[d])).release());
  return sizes;
}

class NumpyKind final : public ProtocolKind {
 public:
  explicit NumpyKind(PyObject* module)
      : ProtocolKind(Library::kNumpy), empty_(owned(PyObject_GetAttrString(module, "empty"))) {}

  Object make(const Argument& argument, DType dtype, std::span<const i64> size, const MemoryPlace&,
              void*&) const override {
    const Object name = owned(PyUnicode_InternFromString(info_of(dtype).numpy));
    Object made(PyObject_CallFunctionObjArgs(empty_.get(), sizes_of(size).get(), name.get(), nullptr));
    if (!made) fail_with_python(argument, "made");
    return made;
  }

 private:
  Object empty_;
};

// torch where it has no exchange table.
class OldTorchKind final : public ProtocolKind {
 public:
  explicit OldTorchKind(bool exact) : ProtocolKind(Library::kTorch, exact) {}

  View read(const Argument& argument, PyObject* tensor, Kept& kept) const override {
    Object plain(PyObject_CallMethod(tensor, "detach", nullptr));
    if (!plain) fail_with_python(argument, "read");
    const View view = ProtocolKind::read(argument, plain.get(), kept);
    kept.push_back(std::move(plain));
    return view;
  }
  Object make(const Argument& argument, DType dtype, std::span<const i64> size, const MemoryPlace& place,
              void*&) const override {
    PyObject* const torch = imported_module("torch");
    const Object empty(PyObject_GetAttrString(torch, "empty"));
    const Object type(PyObject_GetAttrString(torch, info_of(dtype).numpy));
    const std::string device =
        place.kind == MemoryPlace::Kind::kGpu ? fmt::format("cuda:{}", place.device) : "cpu";
    const Object keywords(type ? Py_BuildValue("{s:O,s:s}", "dtype", type.get(), "device", device.c_str())
                               : nullptr);
    const Object positional(keywords ? PyTuple_Pack(1, sizes_of(size).get()) : nullptr);
    Object made(positional && empty ? PyObject_Call(empty.get(), positional.get(), keywords.get()) : nullptr);
    if (!made) fail_with_python(argument, "made");
    return made;
  }
};

class ExchangeKind final : public Kind {
 public:
  ExchangeKind(Library of, bool exact, const DLPackExchangeAPI& table) : Kind(of, exact), table_(table) {}

  View read(const Argument& argument, PyObject* tensor, Kept&) const override {
    DLTensor raw;
    if (table_.dltensor_from_py_object_no_sync(tensor, &raw) != 0) {
      if (library != Library::kTorch) fail_with_python(argument, "read");
      refuse(argument, taken_reason());
    }
    const View view = view_of(argument, raw);
    if (!view.data && library == Library::kTorch && std::ranges::find(view.size, 0) == view.size.end())
      refuse(argument, "it has no address");
    return view;
  }

  Object make(const Argument& argument, DType dtype, std::span<const i64> size, const MemoryPlace& place,
              void*& data) const override {
    DLTensor prototype{.data = nullptr,
                       .device = dlpack_device(place),
                       .ndim = int32_t(size.size()),
                       .dtype = dlpack_type(dtype),
                       .shape = const_cast<i64*>(size.data()),
                       .strides = nullptr,
                       .byte_offset = 0};
    DLManagedTensorVersioned* managed = nullptr;
    const auto set_error = [](void*, const char*, const char* message) {
      PyErr_SetString(PyExc_RuntimeError, message);
    };
    void* made = nullptr;
    if (table_.managed_tensor_allocator(&prototype, &managed, nullptr, set_error) != 0)
      fail_with_python(argument, "made");
    data = static_cast<u8*>(managed->dl_tensor.data) + managed->dl_tensor.byte_offset;
    if (table_.managed_tensor_to_py_object_no_sync(managed, &made) != 0) fail_with_python(argument, "made");
    return Object(static_cast<PyObject*>(made));
  }

  void* stream(const MemoryPlace& place) const override {
    void* stream = nullptr;
    if (place.kind == MemoryPlace::Kind::kGpu &&
        table_.current_work_stream(kDLCUDA, place.device, &stream) != 0)
      throw PythonError{};
    return stream;
  }

 private:
  [[noreturn]] static void refuse(const Argument& argument, const std::string& reason) {
    throw NotMemory(ErrorCode::kInvalidArgument,
                    fmt::format("[{}] {} cannot be read: {}", argument.op, argument.name, reason));
  }

  const DLPackExchangeAPI& table_;
};

bool use_tables = true;

// The exchange table of a type; null where it has none that this build understands.
const DLPackExchangeAPI* table_of(PyObject* type) {
  if (!use_tables) return nullptr;
  const Object capsule(PyObject_GetAttrString(type, "__dlpack_c_exchange_api__"));
  if (!capsule || !PyCapsule_IsValid(capsule.get(), "dlpack_exchange_api")) {
    PyErr_Clear();
    return nullptr;
  }
  const auto* table =
      static_cast<const DLPackExchangeAPI*>(PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api"));
  while (table && table->version.major != 1) table = table->prev_api;
  return table && table->dltensor_from_py_object_no_sync ? table : nullptr;
}

bool is_type(PyObject* module, const char* name, PyObject* type, bool or_below = false) {
  const Object named(module ? PyObject_GetAttrString(module, name) : nullptr);
  if (!named) PyErr_Clear();
  return named && (named.get() == type || (or_below && PyObject_IsSubclass(type, named.get()) == 1));
}

// Libraries whose tensors never change, which their capsules do not say.
bool is_immutable(PyObject* type) {
  const Object module(PyObject_GetAttrString(type, "__module__"));
  if (!module) PyErr_Clear();
  const std::string name = module ? text_of(module.get()) : "";
  const std::string package = name.substr(0, name.find('.'));
  return package == "jax" || package == "jaxlib" || package == "tensorflow" || package == "pyarrow";
}

std::unique_ptr<Kind> make_kind_of_library(PyObject* type) {
  PyObject* const torch = imported_module("torch");
  if (is_type(torch, "Tensor", type, true)) {
    const Object nn = owned(PyObject_GetAttrString(torch, "nn"));
    const bool is_exact = is_type(torch, "Tensor", type) || is_type(nn.get(), "Parameter", type);
    if (const DLPackExchangeAPI* table = table_of(type))
      return std::make_unique<ExchangeKind>(Kind::Library::kTorch, is_exact, *table);
    return std::make_unique<OldTorchKind>(is_exact);
  }
  PyObject* const numpy = imported_module("numpy");
  if (is_type(numpy, "ndarray", type) || is_type(numpy, "memmap", type))
    return std::make_unique<NumpyKind>(numpy);
  if (is_type(numpy, "ndarray", type, true)) return nullptr;  // a mask, say, would be lost
  if (const DLPackExchangeAPI* table = table_of(type))
    return std::make_unique<ExchangeKind>(Kind::Library::kOther, true, *table);
  const Object method(PyObject_GetAttrString(type, "__dlpack__"));
  if (!method) PyErr_Clear();
  return method ? std::make_unique<ProtocolKind>(Kind::Library::kOther) : nullptr;
}

std::unique_ptr<Kind> make_kind(PyObject* type) {
  std::unique_ptr<Kind> made = make_kind_of_library(type);
  if (made && made->library == Kind::Library::kOther) made->is_immutable = is_immutable(type);
  return made;
}

// Kinds that were found. A type that has one lives as long as the process.
std::unordered_map<PyTypeObject*, std::unique_ptr<Kind>>& kinds() {
  static auto& all = *new std::unordered_map<PyTypeObject*, std::unique_ptr<Kind>>;
  return all;
}

PyTypeObject* last_type = nullptr;
const Kind* last_kind = nullptr;

}  // namespace

const Kind* kind_of(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  if (type == last_type) return last_kind;
  const auto found = kinds().find(type);
  const Kind* kind = found != kinds().end() ? found->second.get() : nullptr;
  if (!kind) {
    std::unique_ptr<Kind> made = make_kind(reinterpret_cast<PyObject*>(type));
    if (!made) return nullptr;
    Py_INCREF(type);
    kind = (kinds()[type] = std::move(made)).get();
  }
  last_type = type, last_kind = kind;
  return kind;
}

void use_exchange_tables(bool use) {
  use_tables = use;
  kinds().clear();
  last_type = nullptr, last_kind = nullptr;
}

View view_of(const Argument& argument, const DLTensor& tensor) {
  const size_t rank = size_t(tensor.ndim);
  return {.data = static_cast<u8*>(tensor.data) + tensor.byte_offset,
          .dtype = dtype_of(argument, tensor.dtype),
          .size = {tensor.shape, rank},
          .stride = {tensor.strides, tensor.strides ? rank : 0},
          .place = place_of(argument, tensor.device)};
}

DLDataType dlpack_type(DType dtype) {
  for (const NamedType& named : kTypes)
    if (named.dtype == dtype) return named.dlpack;
  fail(ErrorCode::kUnsupported, "tensors of {} cannot be exchanged", name(dtype));
}

}  // namespace heddle::python
