#include "tests/support/case_memory.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "heddle/base/element.h"
#include "heddle/ir/values.h"

namespace heddle {
namespace {

constexpr size_t kCanary = 64;
constexpr std::byte kCanaryByte{0xA5};

// The panel of an element, with one after the other. Rows are numbered across all matrices.
std::byte* panel_of(const Weight& w, std::byte* base, i32 row, i32 k) {
  const i32 r = row % w.rows();
  const i64 panel =
      i64(row / w.rows()) * w.panels() + i64(r / w.panel_rows) * w.slices() + k / w.slice_cols();
  return base + panel * w.panel_bytes();
}
i64 place(const Weight& w, i32 row, i32 k) {
  return w.place(row % w.rows() % w.panel_rows, k % w.slice_cols());
}

// The scale of an element in codes. The largest value is 1 about; every other group has a scale that is no bf16.
float scale_of(const Weight& w, i32 row, i32 k) {
  const i32 group = row + k / w.group_cols();
  const float largest = w.coding.code == Code::kI4 ? 8 : 448;
  return (1 - float(group % 3) / 4 + (group % 2 == 0 ? 0 : 0x1p-20f)) / largest;
}

}  // namespace

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

std::vector<double> CaseMemory::read(const Tensor& tensor) const {
  return load_values(tensor, memory.base[tensor.buffer] + tensor.offset);
}

std::vector<double> CaseMemory::read(const Weight& weight) const {
  std::vector<double> values;
  const DType dtype = weight.data.dtype;
  std::byte* base = memory.base[weight.data.buffer];
  values.reserve(size_t(weight.matrices) * size_t(weight.rows()) * size_t(weight.cols()));
  for (i32 r = 0; r < weight.matrices * weight.rows(); ++r)
    for (i32 k = 0; k < weight.cols(); ++k) {
      const std::byte* panel = panel_of(weight, base, r, k);
      const i64 at = place(weight, r, k);
      if (!weight.is_coded()) {
        values.push_back(load_number(dtype, panel, at));
        continue;
      }
      float scale;
      std::memcpy(&scale, panel + weight.scale_place(r % weight.rows() % weight.panel_rows, k), sizeof scale);
      const float code = float(load_number(info_of(weight.coding.code).element, panel, at));
      values.push_back(double(round_to(dtype, code * scale)));
    }
  return values;
}

void CaseMemory::write(const Tensor& tensor, std::span<const double> values) {
  store_values(tensor, memory.base[tensor.buffer] + tensor.offset, values);
}

void CaseMemory::write(const Weight& weight, std::span<const double> values) {
  std::byte* base = memory.base[weight.data.buffer];
  for (i32 r = 0; r < weight.matrices * weight.rows(); ++r)
    for (i32 k = 0; k < weight.cols(); ++k) {
      std::byte* panel = panel_of(weight, base, r, k);
      const double value = values[size_t(r) * size_t(weight.cols()) + size_t(k)];
      const i64 at = place(weight, r, k);
      if (!weight.is_coded()) {
        store_number(weight.data.dtype, panel, at, value);
        continue;
      }
      const float scale = scale_of(weight, r, k);
      const double code = value / double(scale);
      store_number(info_of(weight.coding.code).element, panel, at,
                   weight.coding.code == Code::kI4 ? std::clamp(std::round(code), -8.0, 7.0) : code);
      std::memcpy(panel + weight.scale_place(r % weight.rows() % weight.panel_rows, k), &scale, sizeof scale);
    }
}

void CaseMemory::add_weight(const char* name, Weight& weight, std::span<const double> values) {
  const i64 bytes = weight.bytes();
  weight.data.buffer = add({.name = name, .kind = BufferKind::kWeight, .bytes = bytes});
  std::memset(memory.base.back(), 0, size_t(bytes));
  write(weight, values);
  auto& table = tables_[weight.data.buffer];
  for (i32 p = 0; p < weight.panels(); ++p) table.push_back(u64(p) * u64(weight.panel_bytes()));
  memory.panels.back() = table.data();
}

namespace {

std::vector<double> uniform(i64 count, std::mt19937_64& random) {
  std::vector<double> values(static_cast<size_t>(count));
  for (double& v : values) v = double(random() >> 11) * 0x1p-52 - 1;
  return values;
}

void allocate(const Field& field, Tensor& value, CaseMemory& memory, std::mt19937_64& random) {
  i64 last = 0;  // element
  for (int d = 0; d < value.rank; ++d) last += (value.size[d] - 1) * value.stride[d];
  const i64 bytes = value.offset + bytes_of(value.dtype, last + 1);
  if (!value.exists())
    value.buffer = memory.add({.name = field.name, .kind = BufferKind::kActivation, .bytes = bytes});
  std::vector<double> values = uniform(elements(value), random);
  const bool is_code = value.dtype == DType::kI8 || value.dtype == DType::kI4;
  for (double& v : values) v *= is_code ? (1 << (bits_of(value.dtype) - 1)) - 1 : 1;
  if (field.writes()) std::fill(values.begin(), values.end(), is_float(value.dtype) ? NAN : -77.0);
  if (value.dtype != DType::kU8) memory.write(value, values);
}

}  // namespace

std::vector<Output> allocate(const OpSpec& op, std::byte* args, CaseMemory& memory) {
  std::mt19937_64 random{7};
  std::vector<Output> outputs;
  for (const Field& field : op.fields) {
    // an optional argument was left out
    if (field.is_attribute() || field.elements(args).rank == 0) continue;
    if (field.is_weight()) {
      Weight& weight = field.weight(args);
      memory.add_weight(field.name.c_str(), weight, uniform(weight.matrices * elements(weight.data), random));
      continue;
    }
    allocate(field, field.tensor(args), memory, random);
    if (field.writes()) outputs.push_back({field.name, field.tensor(args)});
  }
  return outputs;
}

std::vector<Planted> all_planted(const OpSpec& op, const std::byte* args) {
  std::vector<Planted> all;
  for (const Field& field : op.fields)
    if (!field.is_attribute() && !field.writes() && field.elements(args).rank > 0 &&
        !(field.is_weight() && field.weight(args).is_coded()) && is_float(field.elements(args).dtype) &&
        elements(field.elements(args)) > 0)
      for (const double value : {double(NAN), double(INFINITY), -double(INFINITY)})
        // A query that sees no key has this sum, and no gradient.
        if (field.name != "lse" || value != -double(INFINITY)) all.push_back({field.name, value});
  return all;
}

void plant(const OpSpec& op, std::byte* args, CaseMemory& memory, const Planted& planted) {
  constexpr size_t kPlaces = 3;
  const Field& field = *std::ranges::find(op.fields, planted.field, &Field::name);
  const auto edit = [&](const auto& argument) {
    std::vector<double> values = memory.read(argument);
    std::mt19937_64 random{values.size()};
    for (size_t n = 0; n < std::min(kPlaces, values.size() / 64 + 1); ++n)
      values[random() % values.size()] = planted.value;
    memory.write(argument, values);
  };
  field.is_weight() ? edit(field.weight(args)) : edit(field.tensor(args));
}

bool is_equal_or_reached(const OpSpec& op, bool is_planted, double got, double wanted) {
  if (got == wanted || (std::isnan(got) && std::isnan(wanted))) return true;
  return is_planted && op.traits.spreads_nan && std::isnan(got);
}

}  // namespace heddle
