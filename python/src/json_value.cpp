#include "python/src/json_value.h"

#include "heddle/base/error.h"

namespace heddle::python {
namespace {

constexpr int kMostDepth = 64;

Json convert(PyObject* object, const std::string& where, int depth);

std::string utf8_of(PyObject* text, const std::string& where) {
  Py_ssize_t size = 0;
  const char* const data = PyUnicode_AsUTF8AndSize(text, &size);
  if (!data) {
    PyErr_Clear();
    fail(ErrorCode::kInvalidArgument, "[{}] {} has half of a surrogate pair, which is no character", where,
         short_repr(text));
  }
  return {data, size_t(size)};
}

Json convert_int(PyObject* number, const std::string& where) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (!overflow && !(value == -1 && PyErr_Occurred())) return value;
  PyErr_Clear();
  return parse_json(text_of(number), where);
}

Json convert_items(PyObject* items, const std::string& where, int depth) {
  Json made = Json::array();
  const Object iterator = owned(PyObject_GetIter(items));
  while (PyObject* const next = PyIter_Next(iterator.get())) {
    const Object item(next);
    made.push_back(convert(item.get(), where, depth + 1));
  }
  if (PyErr_Occurred()) throw PythonError{};
  return made;
}

Json convert_members(PyObject* dict, const std::string& where, int depth) {
  Json made = Json::object();
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) {
    const bool is_number = PyLong_Check(key) && !PyBool_Check(key);  // becomes a text, as in Python's json
    require(is_number || PyUnicode_Check(key), "[{}] the key {} is of type {}; must be a text or a number",
            where, short_repr(key), type_name(key));
    made[is_number ? text_of(key) : utf8_of(key, where)] = convert(value, where, depth + 1);
  }
  return made;
}

Json convert(PyObject* object, const std::string& where, int depth) {
  require(depth < kMostDepth, "[{}] a value has more than {} levels of lists", where, kMostDepth);
  if (object == Py_None) return nullptr;
  if (PyBool_Check(object)) return object == Py_True;
  if (PyLong_Check(object)) return convert_int(object, where);
  if (PyFloat_Check(object)) return PyFloat_AsDouble(object);
  if (PyUnicode_Check(object)) return utf8_of(object, where);
  if (PyList_Check(object) || PyTuple_Check(object)) return convert_items(object, where, depth);
  if (PyDict_Check(object)) return convert_members(object, where, depth);
  const Object to_list(PyObject_GetAttrString(object, "tolist"));
  if (!to_list) {
    PyErr_Clear();
    fail(ErrorCode::kInvalidArgument, "[{}] {} is of type {}; a number, a text or a list is expected", where,
         short_repr(object), type_name(object));
  }
  return convert(owned(PyObject_CallNoArgs(to_list.get())).get(), where, depth + 1);
}

}  // namespace

Json json_value(PyObject* object, const std::string& where) {
  return convert(object, where, 0);
}

}  // namespace heddle::python
