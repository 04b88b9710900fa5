// Which argument is which, and Python's values as attributes.
#include "python/src/arguments.h"

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/base/near_names.h"
#include "python/src/torch_route.h"

namespace heddle::python {
namespace {

bool same_key(PyObject* key, PyObject* name) {
  return key == name || PyUnicode_Compare(key, name) == 0;
}

template <class Arguments>
int find(const Arguments& arguments, PyObject* name) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].key == name) return int(i);
  for (size_t i = 0; i < arguments.size(); ++i)
    if (same_key(arguments[i].key, name)) return int(i);
  return -1;
}

[[noreturn]] void refuse(const OpEntry& entry, const std::string& what) {
  throw WrongCall(fmt::format("[{0}] {1}; must be called as {0}{2}", entry.op.name, what, entry.signature()));
}

[[noreturn]] void refuse_unknown(const OpEntry& entry, const std::string& name) {
  std::vector<std::string> known;
  for (const TensorArgument& input : entry.inputs) known.push_back(input.name);
  for (const AttributeArgument& attribute : entry.attributes) known.push_back(attribute.field->name);
  refuse(entry, fmt::format("has no argument {}{}", name, did_you_mean(name, known)));
}

}  // namespace

Given sort_arguments(const OpEntry& entry, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  static PyObject* const out = PyUnicode_InternFromString("out");
  if (!entry.why_not.empty()) fail(ErrorCode::kUnsupported, "[{}] {}", entry.op.name, entry.why_not);
  Given given;
  given.inputs.resize(entry.inputs.size());
  given.attributes.resize(entry.attributes.size());
  if (size_t(count) > entry.inputs.size()) refuse(entry, fmt::format("has {} arguments by position", count));
  std::copy(args, args + count, given.inputs.begin());
  const Py_ssize_t named = names ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* const name = PyTuple_GetItem(names, i);
    PyObject* const value = args[count + i];
    const int attribute = name == out ? -1 : find(entry.attributes, name);
    if (attribute >= 0)
      given.attributes[size_t(attribute)] = value;
    else if (name == out || same_key(out, name))
      given.out = value;
    else if (const int input = find(entry.inputs, name); input < 0)
      refuse_unknown(entry, text_of(name));
    else if (given.inputs[size_t(input)])
      throw WrongCall(fmt::format("[{}] {} is given twice, by position and by name", entry.op.name,
                                  entry.inputs[size_t(input)].name));
    else
      given.inputs[size_t(input)] = value;
  }
  for (size_t i = 0; i < given.inputs.size(); ++i) {
    if (given.inputs[i] == Py_None) given.inputs[i] = nullptr;
    if (!given.inputs[i] && !entry.inputs[i].field->optional)
      refuse(entry, entry.inputs[i].name + " is missing");
  }
  for (size_t i = 0; i < given.attributes.size(); ++i)
    if (!given.attributes[i] && entry.attributes[i].required)
      refuse(entry, entry.attributes[i].field->name + " is missing");
  if (given.out == Py_None) given.out = nullptr;
  return given;
}

// True for NumPy's bool, which is no bool of Python and no number.
bool is_numpy_bool(PyObject* value) {
  const std::string name = type_name(value);
  return name == "numpy.bool" || name == "numpy.bool_";
}

AttributeValue attribute_value(const Argument& argument, PyObject* value) {
  if (PyBool_Check(value)) return value == Py_True;
  if (PyFloat_Check(value)) return PyFloat_AsDouble(value);
  if (PyUnicode_Check(value)) return text_of(value);
  if (kind_of(value) == nullptr) {
    const Object whole(PyIndex_Check(value) ? PyNumber_Index(value) : nullptr);
    if (whole) {
      const long long number = PyLong_AsLongLong(whole.get());
      if (number != -1 || !PyErr_Occurred()) return i64(number);
    }
    PyErr_Clear();
    if (!whole && is_numpy_bool(value)) return PyObject_IsTrue(value) == 1;
    const Object number(whole ? nullptr : PyNumber_Float(value));
    if (number) return PyFloat_AsDouble(number.get());
    PyErr_Clear();
  }
  fail(ErrorCode::kInvalidArgument, "[{}] {} is {}, of type {}; must be a number, a bool or a name",
       argument.op, argument.name, short_repr(value), type_name(value));
}

void set_attributes(const OpEntry& entry, const Given& given, std::byte* args) {
  for (size_t i = 0; i < given.attributes.size(); ++i) {
    if (!given.attributes[i]) continue;
    const Field& field = *entry.attributes[i].field;
    AttributeValue value = attribute_value({entry.op.name, field.name}, given.attributes[i]);
    // Some flags of ops are whole numbers.
    if (const bool* truth = std::get_if<bool>(&value); truth && field.type != AttributeType::kBool)
      value = i64(*truth);
    set_attribute(entry.op.name, field, args, value);
  }
}

const Kind& OneLibrary::kind_of(const TensorArgument& argument, PyObject* tensor) {
  const Kind* const kind = python::kind_of(tensor);
  if (!kind)
    fail(ErrorCode::kInvalidArgument, "[{}] {} is {}, of type {}; must be a torch.Tensor or a numpy.ndarray",
         entry_.op.name, argument.name, short_repr(tensor), type_name(tensor));
  if (!kind_) kind_ = kind, first_ = &argument, first_tensor_ = tensor;
  if (kind->library != kind_->library)
    fail(ErrorCode::kInvalidArgument, "[{}] {} is a {} and {} is a {}; all must be of one library",
         entry_.op.name, argument.name, type_name(tensor), first_->name, type_name(first_tensor_));
  if (!kind->is_exact) require_plain_memory({entry_.op.name, argument.name}, tensor);
  return *kind;
}

void require_writable(const OpEntry& entry, const TensorArgument& argument, const Kind& kind,
                      const View& view, PyObject* tensor) {
  require(!view.read_only, "[{}] {} is read-only; must be writable", entry.op.name, argument.name);
  require(
      !kind.is_immutable,
      "[{}] {} is a {}, which never changes; must be writable: call the op on numpy.asarray of its tensors",
      entry.op.name, argument.name, type_name(tensor));
}

}  // namespace heddle::python
