#include "python/src/values.h"

#include "heddle/base/element.h"
#include "heddle/base/error.h"
#include "heddle/ir/shape.h"

namespace heddle::python {
namespace {

// Calls f(number, place) for each element, row-major; the place is its distance from the first, in elements.
template <class F>
void each_element(const Tensor& tensor, F&& f) {
  const i64 count = elements(tensor);
  for (i64 i = 0; i < count; ++i) {
    i64 rest = i, place = 0;
    for (int d = tensor.rank - 1; d >= 0; --d) {
      place += rest % tensor.size[d] * tensor.stride[d];
      rest /= tensor.size[d];
    }
    f(size_t(i), place);
  }
}

}  // namespace

std::vector<double> HostValues::read(const Tensor& tensor) const {
  std::vector<double> values(size_t(elements(tensor)));
  const auto* const from = reinterpret_cast<const std::byte*>(tensor.data);
  each_element(tensor, [&](size_t i, i64 place) { values[i] = load_number(tensor.dtype, from, place); });
  return values;
}

std::vector<double> HostValues::read(const Weight&) const {
  fail(ErrorCode::kUnsupported, "a packed weight is a part of a program; no op call has one");
}

void HostValues::write(const Tensor& tensor, std::span<const double> values) {
  auto* const to = reinterpret_cast<std::byte*>(tensor.data);
  each_element(tensor, [&](size_t i, i64 place) { store_number(tensor.dtype, to, place, values[i]); });
}

std::byte* HostValues::bytes(u32) {
  fail(ErrorCode::kUnsupported, "a step record is a part of a program; no op call has one");
}

}  // namespace heddle::python
