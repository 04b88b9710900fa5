#include "heddle/model/hf/gguf_file.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/base/float16.h"
#include "heddle/base/memory.h"
#include "heddle/base/parallel.h"
#include "heddle/model/hf/gguf_blocks.h"

namespace heddle {
namespace {

constexpr std::string_view kPlain[] = {"F32", "F16", "BF16"};
constexpr int kGroup = 32;  // elements of a block of Q4_0

bool is_plain(const GgufType& type) {
  return std::ranges::find(kPlain, std::string_view(type.name)) != std::end(kPlain);
}

bool is_q4_0(const GgufPart& part) {
  return std::string_view(part.place.tensor->type->name) == "Q4_0";
}

// The rows of a tensor as transformers orders them. A vector has rows of one element.
class Rows {
 public:
  explicit Rows(const GgufPart& part) : bytes_(part.place.bytes.subspan(part.begin, part.size)) {
    const bool is_vector = part.shape.size() < 2;
    cols_ = is_vector ? 1 : size_t(part.shape.back());
    for (size_t d = 0; d + (is_vector ? 0 : 1) < part.shape.size(); ++d) count_ *= size_t(part.shape[d]);
    if (part.turned_heads > 0) head_ = count_ / size_t(part.turned_heads);
    if (count_ > 0) row_bytes_ = part.size / count_;
  }

  size_t count() const { return count_; }
  size_t cols() const { return cols_; }

  std::span<const std::byte> operator[](size_t row) const {
    if (head_ > 0) {
      const size_t within = row % head_, half = head_ / 2;
      row += 2 * (within % half) + within / half - within;
    }
    return bytes_.subspan(row * row_bytes_, row_bytes_);
  }

 private:
  std::span<const std::byte> bytes_;
  size_t count_ = 1, cols_ = 1, row_bytes_ = 0;
  size_t head_ = 0;  // rows of a head that lie otherwise in the file
};

std::vector<std::byte> in_order(const GgufPart& part, const std::string& name) {
  const Rows rows(part);
  auto made = make_vector<std::byte>(part.size, "the tensor " + name + " in transformers' order");
  for (size_t r = 0, at = 0; r < rows.count(); at += rows[r].size(), ++r)
    std::ranges::copy(rows[r], made.data() + at);
  for (size_t at = 0; part.plus_one && at < made.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, &made[at], sizeof value);
    value -= 1;
    std::memcpy(&made[at], &value, sizeof value);
  }
  return made;
}

}  // namespace

GgufFile::GgufFile(Gguf file) : file_(std::move(file)), parts_(gguf_parts(file_)) {
  for (const auto& [name, part] : parts_) {
    const GgufType& type = *part.place.tensor->type;
    TensorEntry entry = entry_of_type(is_plain(type) ? type.name : "");
    entry.type = type.name, entry.shape = part.shape;
    entry.begin = part.place.tensor->begin + part.begin, entry.size = part.size;
    if (!is_plain(type)) entry.floats = DType::kBf16;
    if (part.plus_one && entry.dtype != DType::kF32)
      fail(ErrorCode::kUnsupported, "[{}] tensor {} is in {}; a norm of this architecture must be F32",
           this->path(), name, type.name);
    if (entry.floats && part.shape.size() < 2)
      fail(ErrorCode::kUnsupported, "[{}] tensor {} is a vector in {}; must be F32, F16 or BF16", path(),
           name, type.name);
    tensors_.emplace(name, std::move(entry));
  }
}

TensorView GgufFile::view(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) fail(ErrorCode::kIo, "[{}] has no tensor {}", path(), name);
  return {name, found->second.dtype.value_or(DType::kBf16), found->second.shape, bytes(name), path()};
}

std::span<const std::byte> GgufFile::bytes(const std::string& name) const {
  const GgufPart& part = parts_.at(name);
  const TensorEntry& entry = tensors_.at(name);
  const bool aligned = entry.dtype && entry.begin % size_t(size_of(*entry.dtype)) == 0;
  if (part.turned_heads == 0 && !part.plus_one && (aligned || entry.floats))
    return part.place.bytes.subspan(part.begin, part.size);
  auto [copy, is_new] = copies_.try_emplace(name);
  if (is_new) copy->second = in_order(part, name);
  return copy->second;
}

void GgufFile::copy_part(const std::string& name, size_t begin, std::span<std::byte> to) const {
  const GgufPart& part = parts_.at(name);
  std::ranges::copy(part.place.bytes.subspan(part.begin + begin, to.size()), to.begin());
}

std::vector<std::byte> GgufFile::floats(const std::string& name) const {
  constexpr size_t kElemsOfAJob = 1 << 18;
  const GgufPart& part = parts_.at(name);
  const Rows rows(part);
  auto made = make_vector<std::byte>(rows.count() * rows.cols() * sizeof(uint16_t),
                                     fmt::format("the tensor {} in bf16", name));
  const size_t rows_of_a_job = std::max<size_t>(kElemsOfAJob / std::max<size_t>(rows.cols(), 1), 1);
  parallel_for((rows.count() + rows_of_a_job - 1) / rows_of_a_job, 0, [&](size_t job) {
    std::vector<float> values(rows.cols());
    const size_t end = std::min(rows.count(), (job + 1) * rows_of_a_job);
    for (size_t row = job * rows_of_a_job; row < end; ++row) {
      expand_blocks(*part.place.tensor->type, rows[row], values);
      std::byte* to = made.data() + row * rows.cols() * sizeof(uint16_t);
      for (size_t col = 0; col < values.size(); ++col) {
        const uint16_t near = float_to_bf16(values[col]);
        std::memcpy(to + col * sizeof near, &near, sizeof near);
      }
    }
  });
  return made;
}

StoredCoding GgufFile::coding(const std::string& name) const {
  const GgufPart& part = parts_.at(name);
  if (is_q4_0(part)) return {{Code::kI4, kGroup}};
  return {.expanded = fmt::format("{} has no code in memory", part.place.tensor->type->name)};
}

// Blocks of Q4_0 are groups of 4-bit integers plus 8, with a scale in f16; the low halves of their bytes come first.
SourceCodes GgufFile::codes(const std::string& name) const {
  const GgufPart& part = parts_.at(name);
  const Rows rows(part);
  SourceCodes made{.coding = {Code::kI4, kGroup}, .shape = {part.shape.begin(), part.shape.end()}};
  made.own = std::make_shared<std::vector<std::byte>>(
      make_vector<std::byte>(rows.count() * rows.cols() / 2, "the codes of " + name));
  made.scales.reserve(rows.count() * rows.cols() / kGroup);
  const auto block_bytes = size_t(part.place.tensor->type->bytes);
  std::byte* to = made.own->data();
  for (size_t row = 0; row < rows.count(); ++row)
    for (auto rest = rows[row]; !rest.empty(); rest = rest.subspan(block_bytes)) {
      uint16_t scale = 0;
      std::memcpy(&scale, rest.data(), sizeof scale);
      made.scales.push_back(f16_to_float(scale));
      const std::byte* codes = rest.data() + sizeof scale;
      for (int i = 0; i < kGroup; i += 2) {
        const auto code = [&](int elem) {
          const auto byte = unsigned(codes[elem % (kGroup / 2)]);
          return (elem < kGroup / 2 ? byte & 15u : byte >> 4) ^ 8u;
        };
        *to++ = std::byte(code(i) | code(i + 1) << 4);
      }
    }
  made.bytes = *made.own;
  return made;
}

void GgufFile::forget(const std::string& name) {
  const auto found = parts_.find(name);
  if (found == parts_.end()) return;
  file_.require_unchanged();
  found->second.place.file->forget(found->second.place.tensor->begin + found->second.begin,
                                   found->second.size);
  copies_.erase(name);
}

}  // namespace heddle
