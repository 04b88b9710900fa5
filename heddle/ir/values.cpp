#include "heddle/ir/values.h"

#include <array>

#include "heddle/base/elements.h"
#include "heddle/ir/shape.h"

namespace heddle {
namespace {

// Calls f(element, step, first, count) for each run of the last dimension: where it begins in memory and how far apart its
// values lie, in elements, and which values of the tensor they are.
template <class F>
void each_run(const Tensor& tensor, F&& f) {
  const int last = tensor.rank - 1;
  const i64 count = tensor.rank ? tensor.size[last] : 1, step = tensor.rank ? tensor.stride[last] : 1;
  std::array<i32, kMaxRank> at = {};
  for (i64 first = 0, all = elements(tensor); first < all; first += count) {
    i64 element = 0;
    for (int d = 0; d < last; ++d) element += at[size_t(d)] * tensor.stride[d];
    f(element, step, size_t(first), size_t(count));
    for (int d = last - 1; d >= 0 && ++at[size_t(d)] == tensor.size[d]; --d) at[size_t(d)] = 0;
  }
}

}  // namespace

std::vector<double> load_values(const Tensor& tensor, const std::byte* from) {
  std::vector<double> values(size_t(elements(tensor)));
  each_run(tensor, [&](i64 element, i64 step, size_t first, size_t count) {
    load_numbers(tensor.dtype, from, element, step, std::span(values).subspan(first, count));
  });
  return values;
}

void store_values(const Tensor& tensor, std::byte* to, std::span<const double> values) {
  each_run(tensor, [&](i64 element, i64 step, size_t first, size_t count) {
    store_numbers(tensor.dtype, to, element, step, values.subspan(first, count));
  });
}

}  // namespace heddle
