#include "heddle/backend/cpu/scalar_block.h"

#include <cstring>

#include "heddle/backend/cpu/element.h"
#include "heddle/backend/cpu/matrix_element.h"
#include "heddle/backend/cpu/weight_element.h"
#include "heddle/base/invariant.h"
#include "heddle/ir/product.h"

namespace heddle {

void AccessGuard::begin(std::string what, std::span<const Region> regions, std::span<std::byte* const> base) {
  what_ = std::move(what);
  windows_.clear();
  stores_.clear();
  last_[0] = last_[1] = 0;
  for (const Region& region : regions) windows_.push_back({region, base[region.buffer]});
}

bool AccessGuard::contains(const Window& window, const std::byte* address, i64 bytes) const {
  const Region& region = window.region;
  i64 at = address - window.base - region.offset;
  if (at < 0 || at + bytes > region.end() - region.offset) return false;
  for (int level = 0; level < 2; ++level) {
    if (region.count[size_t(level)] == 1) continue;
    i64 i = std::min(at / region.stride[size_t(level)], region.count[size_t(level)] - 1);
    at -= i * region.stride[size_t(level)];
  }
  return at + bytes <= region.run;
}

void AccessGuard::expect(const void* address, i64 bytes, Access access) {
  const auto* at = static_cast<const std::byte*>(address);
  size_t& last = last_[size_t(access)];
  if (last < windows_.size() && windows_[last].region.access == access && contains(windows_[last], at, bytes))
    return;
  for (size_t i = 0; i < windows_.size(); ++i)
    if (windows_[i].region.access == access && contains(windows_[i], at, bytes)) {
      last = i;
      return;
    }
  std::string near;
  for (const Window& window : windows_)
    if (window.region.access == access)
      near +=
          fmt::format(" buffer {} [{}, {})", window.region.buffer, window.region.offset, window.region.end());
  i64 offset = windows_.empty() ? 0 : at - windows_[0].base;
  fail(ErrorCode::kInternal,
       "[{}] {} {} bytes outside of what it declares (offset {} from its first buffer); declared:{}", what_,
       access == Access::kRead ? "reads" : "writes", bytes, offset, near);
}

void AccessGuard::store(void* address, i64 bytes) {
  expect(address, bytes, Access::kWrite);
  auto* at = static_cast<std::byte*>(address);
  if (!stores_.empty() && stores_.back().end == at)
    stores_.back().end += bytes;
  else
    stores_.push_back({at, at + bytes});
}

AccessHook AccessGuard::hook() {
  return {this, [](void* guard, const void* address, i64 bytes, bool writes) {
            auto& heard = *static_cast<AccessGuard*>(guard);
            writes ? heard.store(const_cast<void*>(address), bytes) : heard.load(address, bytes);
          }};
}

void AccessGuard::store_declared() {
  for (const auto& [region, base] : windows_) {
    if (region.access != Access::kWrite) continue;
    for (i64 i = 0; i < region.count[0]; ++i)
      for (i64 j = 0; j < region.count[1]; ++j) {
        std::byte* begin = base + region.offset + i * region.stride[0] + j * region.stride[1];
        stores_.push_back({begin, begin + region.run});
      }
  }
}

float ScalarBlock::View::get(i32 j) const {
  const u8* at = data + i64(j) * size_of(dtype);
  if (guard) guard->load(at, size_of(dtype));
  return get_element(dtype, at);
}

void ScalarBlock::View::set(i32 j, float value) {
  u8* at = data + i64(j) * size_of(dtype);
  if (guard) guard->store(at, size_of(dtype));
  set_element(dtype, at, value);
}

i32 ScalarBlock::View::get_int(i32 j) const {
  const u8* at = data + i64(j) * 4;
  if (guard) guard->load(at, 4);
  i32 value;
  std::memcpy(&value, at, 4);
  return value;
}

void ScalarBlock::View::set_int(i32 j, i32 value) {
  u8* at = data + i64(j) * 4;
  if (guard) guard->store(at, 4);
  std::memcpy(at, &value, 4);
}

void ScalarBlock::View::set_byte(i32 j, i32 value) {
  if (guard) guard->store(data + j, 1);
  data[j] = u8(value);
}

float ScalarBlock::WeightRow::load(Index i) const {
  return weight_element(weight, row, i.at);
}

namespace {

// One rounding an element, in order.
float dot(const float* a, const float* b, i32 n) {
  float sum = 0;
  for (i32 k = 0; k < n; ++k) sum = __builtin_fmaf(a[k], b[k], sum);
  return sum;
}

}  // namespace

void ScalarBlock::mma(Fragment& fragment, const Operand& x, const Weight& w) {
  HEDDLE_CHECK(fragment.n0 % w.panel_rows == 0);
  line_.resize(size_t(w.cols()));
  for (i32 c = 0; c < fragment.cols; ++c) {
    for (i32 k = 0; k < w.cols(); ++k) line_[size_t(k)] = weight_element(w, fragment.n0 + c, k);
    for (i32 m = 0; m < fragment.rows; ++m)
      fragment.data[m * fragment.stride + c] = dot(x.data + m * x.stride, line_.data(), w.cols());
  }
}

float ScalarBlock::element(const Matrix& matrix, i32 row, i32 col) {
  const i32 r = matrix.transposed ? col : row, c = matrix.transposed ? row : col;
  const Tensor& data = matrix.data;
  const i64 at = r * data.stride[0] + c, bits = bits_of(data.dtype);
  guard_->load(data.data + at * bits / 8, (bits + 7) / 8);
  return element_of(matrix, r, c);
}

void ScalarBlock::mma(Fragment& fragment, const Matrix& a, const Matrix& b) {
  const DType type = product_dtype(a, b);
  const i32 depth = a.cols();
  rows_.resize(size_t(fragment.rows) * size_t(depth)), line_.resize(size_t(depth));
  for (i32 m = 0; m < fragment.rows; ++m)
    for (i32 k = 0; k < depth; ++k)
      rows_[size_t(m) * size_t(depth) + size_t(k)] = round_to(type, element(a, fragment.m0 + m, k));
  for (i32 n = 0; n < fragment.cols; ++n) {
    for (i32 k = 0; k < depth; ++k) line_[size_t(k)] = round_to(type, element(b, k, fragment.n0 + n));
    for (i32 m = 0; m < fragment.rows; ++m)
      fragment.data[m * fragment.stride + n] =
          dot(rows_.data() + size_t(m) * size_t(depth), line_.data(), depth);
  }
}

ScalarBlock::Product ScalarBlock::product(i32 m, i32 n, i32 k, DType dtype) {
  const Plane left = matrix(m, k, 0, 0);
  const size_t bytes = size_t(n) * size_t(k) * size_t(size_of(dtype));
  auto* right = static_cast<u8*>(scratch_.take(bytes));
  std::memset(right, 0, bytes);
  return {left, {right, dtype, nullptr}, k};
}

void ScalarBlock::mma(Fragment& fragment, const Product& product) {
  line_.resize(size_t(product.k));
  for (i32 c = 0; c < fragment.cols; ++c) {
    const View row = product.right_row(c);
    for (i32 k = 0; k < product.k; ++k) line_[size_t(k)] = row.get(k);
    for (i32 m = 0; m < fragment.rows; ++m)
      fragment.data[m * fragment.stride + c] =
          dot(product.left.data + m * product.left.stride, line_.data(), product.k);
  }
}

}  // namespace heddle
