// References to Python's objects, and its exceptions as C++ ones. All of it needs the interpreter's lock.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <nanobind/nanobind.h>

namespace heddle::python {

// Python has an exception set already.
struct PythonError : std::exception {};

// Owns one reference.
class Object {
 public:
  Object() = default;
  explicit Object(PyObject* owned) : object_(owned) {}
  Object(Object&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Object& operator=(Object&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Object() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// A new reference that must exist.
inline Object owned(PyObject* object) {
  if (!object) throw PythonError{};
  return Object(object);
}

// A str of Python, from UTF-8.
inline nanobind::str text(std::string_view utf8) {
  return nanobind::str(utf8.data(), utf8.size());
}

// A few values, by number; more than kMost are too many.
template <class T>
class Few {
 public:
  static constexpr size_t kMost = 24;
  void resize(size_t count) { count_ = count; }
  size_t size() const { return count_; }
  T& operator[](size_t i) { return values_[i]; }
  const T& operator[](size_t i) const { return values_[i]; }
  T* begin() { return values_; }
  T* end() { return values_ + count_; }
  const T* begin() const { return values_; }
  const T* end() const { return values_ + count_; }

 private:
  T values_[kMost] = {};
  size_t count_ = 0;
};

// Makes a value that lives as long as the process, at its first use. A static of C++ would hold its lock while Python, in
// make(), lets other threads run, and these would wait for it with Python's lock in hand.
template <class T, class Make>
T& kept_forever(T*& place, Make&& make) {
  if (!place) {
    T* const made = make();
    if (!place) place = made;  // another thread may have been first
  }
  return *place;
}

// The module if the process has imported it, otherwise null; borrowed.
PyObject* imported_module(const char* name);
std::string text_of(PyObject* object);     // str(object)
std::string type_name(PyObject* object);   // "numpy.ndarray", "int"
std::string short_repr(PyObject* object);  // at most 60 characters

// Calls f. Exceptions of C++ become Python's, and the result null.
template <class F>
PyObject* guarded(F&& f) noexcept;
// True when Ctrl-C was pressed, and then Python has its exception. Called without the interpreter's lock.
bool is_interrupted();
void set_python_error() noexcept;  // in a catch block: what was thrown becomes Python's exception

template <class F>
PyObject* guarded(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

}  // namespace heddle::python
