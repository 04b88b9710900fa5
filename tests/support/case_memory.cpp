#include "tests/support/case_memory.h"

#include <cmath>
#include <cstring>
#include <random>

#include "heddle/base/float16.h"

namespace heddle {
namespace {

constexpr size_t kCanary = 64;
constexpr std::byte kCanaryByte{0xA5};

double get(const std::byte* at, DType dtype) {
  uint16_t half;
  std::memcpy(&half, at, sizeof half);
  float value;
  int32_t integer;
  switch (dtype) {
    case DType::kBf16:
      return double(bf16_to_float(half));
    case DType::kF16:
      return double(f16_to_float(half));
    case DType::kI32:
      std::memcpy(&integer, at, 4);
      return integer;
    case DType::kU8:
      return double(*at);
    case DType::kF32:
      std::memcpy(&value, at, 4);
      return double(value);
  }
  return 0;
}

void put(std::byte* at, DType dtype, double value) {
  uint16_t half;
  float single = float(value);
  int32_t integer = int32_t(std::lrint(value));
  switch (dtype) {
    case DType::kBf16:
      half = float_to_bf16(single), std::memcpy(at, &half, 2);
      break;
    case DType::kF16:
      half = float_to_f16(single), std::memcpy(at, &half, 2);
      break;
    case DType::kI32:
      std::memcpy(at, &integer, 4);
      break;
    case DType::kU8:
      *at = std::byte(integer);
      break;
    case DType::kF32:
      std::memcpy(at, &single, 4);
      break;
  }
}

// Place of an element in elements, panels one after the other. Rows of all matrices are counted on.
i64 place(const Weight& w, i32 row, i32 k) {
  const i32 r = row % w.rows();
  const i64 panel =
      i64(row / w.rows()) * w.panels() + i64(r / w.panel_rows) * w.slices() + k / w.slice_cols();
  return panel * w.panel_rows * w.padded_cols() + w.place(r % w.panel_rows, k % w.slice_cols());
}

}  // namespace

i64 elements(const Tensor& tensor) {
  i64 count = 1;
  for (int d = 0; d < tensor.rank; ++d) count *= tensor.size[d];
  return count;
}

u32 CaseMemory::add(Buffer info) {
  const size_t bytes = size_t(info.bytes);
  store_.emplace_back(bytes + 2 * kCanary + 64, kCanaryByte);
  std::byte* base = store_.back().data() + kCanary;
  base += (64 - reinterpret_cast<uintptr_t>(base) % 64) % 64;
  memory.base.push_back(base);
  memory.panels.push_back(nullptr);
  buffers.push_back({std::move(info), -1});
  return u32(buffers.size() - 1);
}

bool CaseMemory::canaries_whole() const {
  for (size_t b = 0; b < buffers.size(); ++b) {
    const std::byte *base = memory.base[b], *end = base + buffers[b].info.bytes;
    for (const std::byte* at = store_[b].data(); at < base; ++at)
      if (*at != kCanaryByte) return false;
    for (const std::byte* at = end; at < store_[b].data() + store_[b].size(); ++at)
      if (*at != kCanaryByte) return false;
  }
  return true;
}

template <class F>
void CaseMemory::each(const Tensor& tensor, F&& f) const {
  std::array<i32, kMaxRank> at = {};
  const i64 count = elements(tensor);
  for (i64 n = 0; n < count; ++n) {
    i64 offset = 0;
    for (int d = 0; d < tensor.rank; ++d) offset += at[size_t(d)] * tensor.stride[d];
    f(size_t(n), memory.base[tensor.buffer] + tensor.offset + offset * size_of(tensor.dtype));
    for (int d = tensor.rank - 1; d >= 0 && ++at[size_t(d)] == tensor.size[d]; --d) at[size_t(d)] = 0;
  }
}

std::vector<double> CaseMemory::read(const Tensor& tensor) const {
  std::vector<double> values(size_t(elements(tensor)));
  each(tensor, [&](size_t n, const std::byte* at) { values[n] = get(at, tensor.dtype); });
  return values;
}

std::vector<double> CaseMemory::read(const Weight& weight) const {
  std::vector<double> values;
  const DType dtype = weight.data.dtype;
  const std::byte* base = memory.base[weight.data.buffer];
  for (i32 r = 0; r < weight.matrices * weight.rows(); ++r)
    for (i32 k = 0; k < weight.cols(); ++k)
      values.push_back(get(base + place(weight, r, k) * size_of(dtype), dtype));
  return values;
}

void CaseMemory::write(const Tensor& tensor, std::span<const double> values) {
  each(tensor, [&](size_t n, std::byte* at) { put(at, tensor.dtype, values[n]); });
}

void CaseMemory::add_weight(const char* name, Weight& weight, std::span<const double> values) {
  const i64 bytes = weight.bytes();
  weight.data.buffer = add({.name = name, .kind = BufferKind::kWeight, .bytes = bytes});
  std::byte* base = memory.base.back();
  std::memset(base, 0, size_t(bytes));
  for (i32 r = 0; r < weight.matrices * weight.rows(); ++r)
    for (i32 k = 0; k < weight.cols(); ++k)
      put(base + place(weight, r, k) * size_of(weight.data.dtype), weight.data.dtype,
          values[size_t(r) * size_t(weight.cols()) + size_t(k)]);
  auto& table = tables_[weight.data.buffer];
  for (i32 p = 0; p < weight.panels(); ++p) table.push_back(u64(p) * u64(weight.panel_bytes()));
  memory.panels.back() = table.data();
}

namespace {

struct Allocate : ArgVisitor {
  CaseMemory* memory;
  std::mt19937_64 random{7};
  std::vector<Output> outputs;

  std::vector<double> uniform(i64 count) {
    std::vector<double> values(static_cast<size_t>(count));
    for (double& v : values) v = double(random() >> 11) * 0x1p-52 - 1;
    return values;
  }

  void tensor(const char* name, Tensor& value, const char*, Access access) override {
    if (value.rank == 0) return;  // an optional argument that this case leaves out
    i64 bytes = value.offset + size_of(value.dtype);
    for (int d = 0; d < value.rank; ++d)
      bytes += (value.size[d] - 1) * value.stride[d] * size_of(value.dtype);
    if (!value.exists())
      value.buffer = memory->add({.name = name, .kind = BufferKind::kActivation, .bytes = bytes});
    std::vector<double> values = uniform(elements(value));
    if (access == Access::kWrite)
      std::fill(values.begin(), values.end(), is_float(value.dtype) ? NAN : -77.0);
    if (value.dtype != DType::kU8) memory->write(value, values);
    if (access == Access::kWrite) outputs.push_back({name, value});
  }
  void weight(const char* name, Weight& value, const char*) override {
    if (value.data.rank > 0) memory->add_weight(name, value, uniform(value.matrices * elements(value.data)));
  }
  void attribute(const char*, i32&) override {}
  void attribute(const char*, float&) override {}
};

}  // namespace

std::vector<Output> allocate(const OpSpec& op, std::byte* args, CaseMemory& memory) {
  Allocate walk;
  walk.memory = &memory;
  op.visit(args, walk);
  return std::move(walk.outputs);
}

}  // namespace heddle
