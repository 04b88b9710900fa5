// Which argument is which, and Python's values as attributes.
#include "python/src/arguments.h"

#include <algorithm>

#include "heddle/base/error.h"

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

}  // namespace

Given sort_arguments(const OpEntry& entry, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  static PyObject* const out = PyUnicode_InternFromString("out");
  if (!entry.why_not.empty()) fail(ErrorCode::kUnsupported, "[{}] {}", entry.op.name, entry.why_not);
  Given given;
  given.inputs.resize(entry.inputs.size());
  given.attributes.resize(entry.attributes.size());
  require(size_t(count) <= entry.inputs.size(), "[{}] has {} arguments by position; must be called as {}{}",
          entry.op.name, count, entry.op.name, entry.inputs.size() < size_t(count) ? entry.signature() : "");
  std::copy(args, args + count, given.inputs.begin());
  const Py_ssize_t named = names ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* const name = PyTuple_GetItem(names, i);
    PyObject* const value = args[count + i];
    if (const int attribute = find(entry.attributes, name); attribute >= 0)
      given.attributes[size_t(attribute)] = value;
    else if (name == out || same_key(out, name))
      given.out = value;
    else if (const int input = find(entry.inputs, name); input < 0)
      fail(ErrorCode::kInvalidArgument, "[{}] has no argument {}; must be called as {}{}", entry.op.name,
           text_of(name), entry.op.name, entry.signature());
    else if (given.inputs[size_t(input)])
      fail(ErrorCode::kInvalidArgument, "[{}] {} is given twice, by position and by name", entry.op.name,
           entry.inputs[size_t(input)].name);
    else
      given.inputs[size_t(input)] = value;
  }
  for (size_t i = 0; i < given.inputs.size(); ++i) {
    if (given.inputs[i] == Py_None) given.inputs[i] = nullptr;
    if (!given.inputs[i] && !entry.inputs[i].field->optional)
      fail(ErrorCode::kInvalidArgument, "[{}] {} is missing; must be called as {}{}", entry.op.name,
           entry.inputs[i].name, entry.op.name, entry.signature());
  }
  if (given.out == Py_None) given.out = nullptr;
  return given;
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

}  // namespace heddle::python
