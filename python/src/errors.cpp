#include <algorithm>
#include <exception>

#include "heddle/base/error.h"
#include "heddle/base/types.h"
#include "python/src/arguments.h"

namespace heddle::python {
namespace {

// The class of heddle/errors.py for a code.
const char* class_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "InvalidArgument";
    case ErrorCode::kUnsupported:
      return "Unsupported";
    case ErrorCode::kIo:
      return "FileError";
    case ErrorCode::kDevice:
      return "DeviceError";
    default:
      return "Error";
  }
}

void set_error(const char* name, const char* message) {
  const Object module(PyImport_ImportModule("heddle.errors"));
  const Object type(module ? PyObject_GetAttrString(module.get(), name) : nullptr);
  if (type) PyErr_SetString(type.get(), message);
}

void set_heddle_error(ErrorCode code, const char* message) {
  if (code != ErrorCode::kCompile) return set_error(class_of(code), message);
  const Object module(PyImport_ImportModule("heddle.errors"));
  const Object error(module ? PyObject_CallMethod(module.get(), "compile_error", "s", message) : nullptr);
  if (error) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
}

}  // namespace

void set_python_error() noexcept {
  try {
    throw;
  } catch (const PythonError&) {
  } catch (const WrongCall& error) {
    set_error("WrongCall", error.what());
  } catch (const DeadlineExceeded& error) {
    set_error("DeadlineExceeded", error.what());
  } catch (const Error& error) {
    set_heddle_error(error.code(), error.what());
  } catch (const nanobind::python_error&) {
    PyErr_SetString(PyExc_RuntimeError, "an exception of Python passed through heddle");
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    set_heddle_error(ErrorCode::kInternal, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an unknown exception passed through heddle");
  }
}

PyObject* imported_module(const char* name) {
  PyObject* const modules = PyImport_GetModuleDict();  // borrowed
  return modules ? PyDict_GetItemString(modules, name) : nullptr;
}

std::string text_of(PyObject* object) {
  const Object text(PyObject_Str(object));
  Py_ssize_t size = 0;
  const char* const data = text ? PyUnicode_AsUTF8AndSize(text.get(), &size) : nullptr;
  if (!data) {
    PyErr_Clear();
    return "?";
  }
  return {data, size_t(size)};
}

bool is_interrupted() {
  const nanobind::gil_scoped_acquire locked;
  return PyErr_CheckSignals() != 0;
}

std::string type_name(PyObject* object) {
  auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  const auto attribute = [&](const char* name) {
    const Object value(PyObject_GetAttrString(type, name));
    if (!value) PyErr_Clear();
    return value ? text_of(value.get()) : std::string("?");
  };
  const std::string module = attribute("__module__"), name = attribute("__qualname__");
  return module == "builtins" ? name : module + "." + name;
}

std::string short_repr(PyObject* object) {
  constexpr size_t kMost = 60;
  const Object text(PyObject_Repr(object));
  if (!text) {
    PyErr_Clear();
    return "?";
  }
  std::string all = text_of(text.get());
  std::replace(all.begin(), all.end(), '\n', ' ');
  if (all.size() <= kMost) return all;
  size_t cut = kMost - 3;
  while (cut > 0 && (u8(all[cut]) & 0xc0) == 0x80) --cut;  // between two characters
  return all.substr(0, cut) + "...";
}

}  // namespace heddle::python
