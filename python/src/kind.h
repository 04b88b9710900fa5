// Tensors of other libraries, by the library that they are of: how to read one where it lies, and how to make one. A type's
// kind is found once and kept.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/ir/call/op_call.h"
#include "python/src/exchange.h"
#include "python/src/object.h"

namespace heddle::python {

// The name in messages.
struct Argument {
  std::string_view op, name;
};

// A tensor for the time of a call. Sizes and strides are memory of the tensor.
struct View {
  void* data = nullptr;
  DType dtype = DType::kF32;
  std::span<const i64> size, stride;  // no strides: dense
  MemoryPlace place;
  bool read_only = false;

  TensorRef ref() const { return {data, dtype, size, stride, place}; }
};

// A tensor of torch that is no memory by itself: torch's dispatcher knows what it is.
class NotMemory : public Error {
 public:
  using Error::Error;
};

// Objects that must live until a call is done.
using Kept = std::vector<Object>;

class Kind {
 public:
  enum class Library : u8 { kTorch, kNumpy, kOther };

  explicit Kind(Library of, bool exact = true) : library(of), is_exact(exact) {}
  virtual ~Kind() = default;
  virtual View read(const Argument& argument, PyObject* tensor, Kept& kept) const = 0;
  // A dense tensor without values, and its view, whose sizes are those given.
  Object make(const Argument& argument, DType dtype, std::span<const i64> size, const MemoryPlace& place,
              View& view, Kept& kept) const {
    void* data = nullptr;
    Object made = make(argument, dtype, size, place, data);
    view = data ? View{.data = data, .dtype = dtype, .size = size, .place = place}
                : read(argument, made.get(), kept);
    return made;
  }
  // The stream on which the library works now; null on the host.
  virtual void* stream(const MemoryPlace&) const { return nullptr; }

 protected:
  // `data` becomes its address where that is known at no cost.
  virtual Object make(const Argument& argument, DType dtype, std::span<const i64> size,
                      const MemoryPlace& place, void*& data) const = 0;

 public:
  const Library library;
  const bool is_exact;        // false: a subclass of torch.Tensor, which may be anything but memory
  bool is_immutable = false;  // whatever the protocol says
};

// Null for an object that is no tensor.
const Kind* kind_of(PyObject* object);

// Makes kinds without exchange tables, as for older libraries. For tests.
void use_exchange_tables(bool use);

View view_of(const Argument& argument, const DLTensor& tensor);
DLDataType dlpack_type(DType dtype);

}  // namespace heddle::python
