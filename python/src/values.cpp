#include "python/src/values.h"

#include "heddle/base/error.h"
#include "heddle/ir/values.h"

namespace heddle::python {

std::vector<double> HostValues::read(const Tensor& tensor) const {
  return load_values(tensor, reinterpret_cast<const std::byte*>(tensor.data));
}

std::vector<double> HostValues::read(const Weight&) const {
  fail(ErrorCode::kUnsupported, "a packed weight is a part of a program; no op call has one");
}

void HostValues::write(const Tensor& tensor, std::span<const double> values) {
  store_values(tensor, reinterpret_cast<std::byte*>(tensor.data), values);
}

std::byte* HostValues::bytes(u32) {
  fail(ErrorCode::kUnsupported, "a step record is a part of a program; no op call has one");
}

}  // namespace heddle::python
