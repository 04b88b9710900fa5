#include "heddle/base/gguf.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "heddle/base/error.h"
#include "heddle/base/memory.h"
#include "heddle/base/placeholder.h"

namespace heddle {
namespace {

constexpr size_t kAlignment = 32;  // where the file does not say how tensors are aligned
constexpr uint32_t kMaxDims = 4;
constexpr int kSuper = 256;  // a block with scales inside has so many elements

// A text of the file in a message.
std::string shown(std::string_view text) {
  constexpr size_t kMost = 60;
  return fmt::format("{:?}", text.substr(0, kMost)) + (text.size() > kMost ? "..." : "");
}

bool is_plain(std::string_view name) {
  constexpr size_t kMost = 128;
  return name.size() <= kMost && std::ranges::all_of(name, [](char c) { return c > 32 && c < 127; });
}

// The bytes of a block: its codes, and what else it has.
constexpr GgufType block(uint32_t id, const char* name, int elems, int bits, int more) {
  return {id, name, elems, elems * bits / 8 + more};
}

constexpr GgufType kTypes[] = {
    block(0, "F32", 1, 32, 0),
    block(1, "F16", 1, 16, 0),
    block(2, "Q4_0", 32, 4, 2),                // d
    block(3, "Q4_1", 32, 4, 2 + 2),            // d, m
    block(6, "Q5_0", 32, 5, 2),                // d
    block(7, "Q5_1", 32, 5, 2 + 2),            // d, m
    block(8, "Q8_0", 32, 8, 2),                // d
    block(10, "Q2_K", kSuper, 2, 16 + 2 + 2),  // scales and mins of 4 bits, d, m
    block(11, "Q3_K", kSuper, 3, 12 + 2),      // scales of 6 bits, d
    block(12, "Q4_K", kSuper, 4, 12 + 2 + 2),  // scales and mins of 6 bits, d, m
    block(13, "Q5_K", kSuper, 5, 12 + 2 + 2),
    block(14, "Q6_K", kSuper, 6, 16 + 2),       // scales of 8 bits, d
    block(16, "IQ2_XXS", kSuper, 2, 2),         // d
    block(17, "IQ2_XS", kSuper, 2, 2 + 8),      // d, scales of 4 bits
    block(18, "IQ3_XXS", kSuper, 3, 2),         // d
    block(19, "IQ1_S", kSuper, 1, 2 + 16),      // d, high bits of codes with scales
    block(20, "IQ4_NL", 32, 4, 2),              // d
    block(21, "IQ3_S", kSuper, 3, 2 + 8 + 4),   // d, high bits of codes, scales of 4 bits
    block(22, "IQ2_S", kSuper, 2, 2 + 8 + 8),   // d, high bits of codes, scales of 4 bits
    block(23, "IQ4_XS", kSuper, 4, 2 + 2 + 4),  // d, high and low bits of scales
    block(29, "IQ1_M", kSuper, 1, 16 + 8),      // high bits of codes, scales with d
    block(30, "BF16", 1, 16, 0),
    block(39, "MXFP4", 32, 4, 1),  // exponent
};

struct OtherType {
  uint32_t id;
  const char* name;
};
// Types of the format that heddle does not read.
constexpr OtherType kOtherTypes[] = {
    {9, "Q8_1"}, {15, "Q8_K"}, {24, "I8"},    {25, "I16"},   {26, "I32"},
    {27, "I64"}, {28, "F64"},  {34, "TQ1_0"}, {35, "TQ2_0"}, {40, "NVFP4"},
};

const GgufType& type_of(uint32_t id, const std::string& path, const std::string& name) {
  const auto found = std::ranges::find(kTypes, id, &GgufType::id);
  if (found != std::end(kTypes)) return *found;
  std::vector<std::string_view> known;
  for (const GgufType& type : kTypes) known.emplace_back(type.name);
  const auto other = std::ranges::find(kOtherTypes, id, &OtherType::id);
  fail(ErrorCode::kUnsupported, "[{}] tensor {} is in {}, which heddle does not read; it reads {}", path,
       shown(name), other != std::end(kOtherTypes) ? other->name : fmt::format("the unknown type {}", id),
       fmt::join(known, ", "));
}

// Bytes of a number; 0 for texts, arrays and unknown types.
size_t width_of(GgufValue::Type type) {
  constexpr size_t kWidths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return size_t(type) < std::size(kWidths) ? kWidths[size_t(type)] : 0;
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

std::span<const GgufType> gguf_types() {
  return kTypes;
}

bool is_gguf(const std::string& path) {
  return path.ends_with(".gguf") && is_file(path);
}

void GgufValue::fail_as(const char* wanted) const {
  fail(ErrorCode::kIo, "{} is {}; must be {}", where_,
       is_array_                ? "a list"
       : type_ == Type::kString ? "a text"
       : type_ == Type::kBool   ? "a flag"
                                : "a number",
       wanted);
}

void GgufValue::require_one(const char* wanted) const {
  if (is_array_) fail_as(wanted);
}

std::optional<int64_t> GgufValue::int_at(size_t index) const {
  const std::byte* at = bytes_.data() + index * width_of(type_);
  switch (type_) {
    case Type::kU8:
      return load<uint8_t>(at);
    case Type::kI8:
      return load<int8_t>(at);
    case Type::kU16:
      return load<uint16_t>(at);
    case Type::kI16:
      return load<int16_t>(at);
    case Type::kU32:
      return load<uint32_t>(at);
    case Type::kI32:
      return load<int32_t>(at);
    case Type::kBool:
      return load<uint8_t>(at) != 0;
    case Type::kI64:
      return load<int64_t>(at);
    case Type::kU64:
      if (const auto value = load<uint64_t>(at); std::in_range<int64_t>(value)) return int64_t(value);
      return {};
    default:
      return {};
  }
}

double GgufValue::number_at(size_t index) const {
  const std::byte* at = bytes_.data() + index * width_of(type_);
  if (type_ == Type::kF64) return load<double>(at);
  if (type_ == Type::kF32) return std::strtod(fmt::format("{}", load<float>(at)).c_str(), nullptr);
  const std::optional<int64_t> whole = int_at(index);
  if (!whole || type_ == Type::kBool) fail_as("a number");
  return double(*whole);
}

int64_t GgufValue::as_int(int64_t min, int64_t max) const {
  require_one("a whole number");
  const std::optional<int64_t> value = type_ == Type::kBool ? std::nullopt : int_at(0);
  if (!value) fail_as("a whole number");
  if (*value < min || *value > max)
    fail(ErrorCode::kIo, "{} is {}; must be a whole number from {} to {}", where_, *value, min, max);
  return *value;
}

double GgufValue::as_number() const {
  require_one("a number");
  return number_at(0);
}

bool GgufValue::as_bool() const {
  require_one("true or false");
  if (type_ != Type::kBool) fail_as("true or false");
  return *int_at(0) != 0;
}

std::string GgufValue::as_string() const {
  require_one("a text");
  return std::string(strings().front());
}

std::vector<int64_t> GgufValue::ints() const {
  std::vector<int64_t> made;
  for (size_t i = 0; i < count_; ++i) {
    const std::optional<int64_t> value = int_at(i);
    if (!value) fail_as("whole numbers");
    made.push_back(*value);
  }
  return made;
}

std::vector<double> GgufValue::numbers() const {
  std::vector<double> made;
  for (size_t i = 0; i < count_; ++i) made.push_back(number_at(i));
  return made;
}

std::vector<std::string_view> GgufValue::strings() const {
  if (type_ != Type::kString) fail_as("text");
  std::vector<std::string_view> made;
  const auto* at = reinterpret_cast<const char*>(bytes_.data());
  for (size_t i = 0; i < count_; ++i) {
    const auto length = load<uint64_t>(reinterpret_cast<const std::byte*>(at));
    made.emplace_back(at + sizeof length, length);
    at += sizeof length + length;
  }
  return made;
}

// Reads a header from its first byte to its last.
class GgufReader {
 public:
  GgufReader(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  GgufHeader read() {
    read_magic();
    const auto tensors = take<uint64_t>(), values = take<uint64_t>();
    GgufHeader header;
    // A key, its type and a value take at least 13 bytes, a tensor 24; larger counts end where the file does.
    for (uint64_t i = 0; i < values; ++i) read_value(header);
    const std::vector<std::string> names = read_tensors(tensors, header);
    place_tensors(names, header);
    return header;
  }

 private:
  template <class T>
  T take() {
    return load<T>(skip(sizeof(T)).data());
  }

  std::span<const std::byte> skip(uint64_t size) {
    if (size > bytes_.size() - at_)
      fail(ErrorCode::kIo, "[{}] ends at byte {}, where {} more are needed at byte {}; download it again",
           path_, bytes_.size(), size, at_);
    at_ += size;
    return bytes_.subspan(at_ - size, size);
  }

  std::string take_text() {
    const std::span<const std::byte> text = skip(take<uint64_t>());
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  void read_magic() {
    if (bytes_.size() < 4 || std::memcmp(bytes_.data(), "GGUF", 4) != 0) {
      refuse_placeholder(path_, {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()});
      fail(ErrorCode::kIo, "[{}] is no GGUF file: it does not begin with GGUF", path_);
    }
    at_ = 4;
    const auto version = take<uint32_t>();
    if (version > 0xffff)
      fail(ErrorCode::kUnsupported, "[{}] is in big-endian order, which is not read", path_);
    if (version != 2 && version != 3)
      fail(ErrorCode::kUnsupported, "[{}] is GGUF of version {}; heddle reads 2 and 3", path_, version);
  }

  void read_value(GgufHeader& header) {
    const std::string key = take_text();
    GgufValue value;
    value.where_ = fmt::format("[{}] {}", path_, is_plain(key) ? key : shown(key));
    value.type_ = GgufValue::Type(take<uint32_t>());
    if (value.type_ == GgufValue::Type::kArray) {
      value.is_array_ = true;
      value.type_ = GgufValue::Type(take<uint32_t>());
      value.count_ = take<uint64_t>();
    }
    const size_t begin = at_;
    if (value.type_ == GgufValue::Type::kString) {
      for (uint64_t i = 0; i < value.count_; ++i) skip(take<uint64_t>());
    } else {
      const size_t width = width_of(value.type_);
      if (width == 0)
        fail(ErrorCode::kIo, "{} is of the type {}; must be 0 to 12, and no list of lists", value.where_,
             uint32_t(value.type_));
      skip(value.count_ > bytes_.size() ? ~uint64_t{0} : value.count_ * width);
    }
    value.bytes_ = bytes_.subspan(begin, at_ - begin);
    if (!header.values.emplace(key, std::move(value)).second)
      fail(ErrorCode::kIo, "[{}] has the key {} twice", path_, shown(key));
  }

  // Returns their names, in the order of the file.
  std::vector<std::string> read_tensors(uint64_t count, GgufHeader& header) {
    std::vector<std::string> names;
    for (uint64_t i = 0; i < count; ++i) {
      const std::string name = take_text();
      if (!is_plain(name))
        fail(ErrorCode::kIo, "[{}] tensor {} has a name of {} bytes; must be at most 128 letters of ASCII",
             path_, shown(name), name.size());
      const auto dims = take<uint32_t>();
      if (dims > kMaxDims)
        fail(ErrorCode::kIo, "[{}] tensor {} has {} dimensions; must be at most {}", path_, shown(name), dims,
             kMaxDims);
      GgufTensor tensor;
      tensor.shape.resize(dims);
      for (size_t d = dims; d-- > 0;) tensor.shape[d] = take<int64_t>();
      tensor.type = &type_of(take<uint32_t>(), path_, name);
      tensor.size = size_of(tensor, name);
      tensor.begin = take<uint64_t>();
      if (!header.tensors.emplace(name, std::move(tensor)).second)
        fail(ErrorCode::kIo, "[{}] has the tensor {} twice", path_, shown(name));
      names.push_back(name);
    }
    return names;
  }

  size_t size_of(const GgufTensor& tensor, const std::string& name) const {
    uint64_t blocks = 1;
    bool fits = true;
    for (const int64_t dim : tensor.shape)
      fits = fits && dim >= 0 && !__builtin_mul_overflow(blocks, uint64_t(dim), &blocks);
    const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
    const auto elems = uint64_t(tensor.type->elems);
    if (fits && uint64_t(row) % elems != 0)
      fail(ErrorCode::kIo, "[{}] tensor {} has rows of {} elements; in {} they must be a multiple of {}",
           path_, shown(name), row, tensor.type->name, elems);
    if (!fits || __builtin_mul_overflow(blocks / elems, uint64_t(tensor.type->bytes), &blocks))
      fail(ErrorCode::kIo, "[{}] tensor {} has the shape [{}], whose size overflows", path_, shown(name),
           fmt::join(tensor.shape, ", "));
    return blocks;
  }

  void place_tensors(const std::vector<std::string>& names, GgufHeader& header) const {
    size_t alignment = kAlignment;
    if (const auto found = header.values.find("general.alignment"); found != header.values.end())
      alignment = size_t(found->second.as_int(1, 1 << 20));
    const size_t begin = (at_ + alignment - 1) / alignment * alignment;
    for (const std::string& name : names) {
      GgufTensor& tensor = header.tensors.at(name);
      const size_t offset = tensor.begin;
      if (begin > bytes_.size() || offset > bytes_.size() - begin ||
          tensor.size > bytes_.size() - begin - offset)
        fail(ErrorCode::kIo,
             "[{}] tensor {} lies at byte {} and takes {}; the file has {} (was it cut short?)", path_,
             shown(name), fmt::format("{} + {}", begin, offset), tensor.size, bytes_.size());
      if (offset % alignment != 0)
        fail(ErrorCode::kIo, "[{}] tensor {} lies at byte {} of the data; must be a multiple of {}", path_,
             shown(name), offset, alignment);
      tensor.begin = begin + offset;
    }
  }

  std::span<const std::byte> bytes_;
  const std::string& path_;
  size_t at_ = 0;
};

GgufHeader parse_gguf(std::span<const std::byte> bytes, const std::string& path) {
  return GgufReader(bytes, path).read();
}

namespace {

// "-00001-of-00003.gguf" after the name that all files share; nothing: it is no part of several.
struct PartName {
  std::string stem, count;
};
std::optional<PartName> part_of(const std::string& path) {
  constexpr std::string_view kForm = "-00000-of-00000.gguf";
  if (path.size() < kForm.size()) return {};
  const std::string end = path.substr(path.size() - kForm.size());
  for (size_t i = 0; i < end.size(); ++i) {
    const bool is_digit = end[i] >= '0' && end[i] <= '9';
    if (kForm[i] == '0' ? !is_digit : end[i] != kForm[i]) return {};
  }
  return PartName{path.substr(0, path.size() - kForm.size()), end.substr(10, 5)};
}

}  // namespace

Gguf::Gguf(const std::string& path) : path_(path) {
  with_memory_for("the description of a GGUF file", [&] {
    const std::optional<PartName> part = part_of(path);
    const int count = part ? std::max(std::atoi(part->count.c_str()), 1) : 1;
    files_.reserve(size_t(count)), headers_.reserve(size_t(count));
    for (int number = 1; number <= count; ++number) {
      const std::string one =
          part ? fmt::format("{}-{:05}-of-{}.gguf", part->stem, number, part->count) : path;
      if (number > 1 && !path_exists(one))
        fail(ErrorCode::kIo, "[{}] is missing; the model is in {} files, of which all must be here", one,
             count);
      const MappedFile& file = files_.emplace_back(one);
      GgufHeader header =
          file.read([&](std::string_view text) { return parse_gguf(std::as_bytes(std::span(text)), one); });
      add(std::move(header), file.bytes(), &file);
    }
    const GgufValue* split = find("split.count");
    const int64_t wanted = split ? split->as_int(0, 99999) : 0;
    if (wanted > 1 && wanted != count)
      fail(ErrorCode::kIo,
           "[{}] is one of {} files; they must be named as they were made, name-00001-of-{:05}.gguf", path_,
           wanted, wanted);
  });
}

Gguf::Gguf(std::span<const std::byte> bytes, const std::string& path) : path_(path) {
  headers_.reserve(1);
  add(parse_gguf(bytes, path), bytes, nullptr);
}

void Gguf::add(GgufHeader header, std::span<const std::byte> bytes, const MappedFile* file) {
  for (const auto& [name, tensor] : headers_.emplace_back(std::move(header)).tensors)
    if (!tensors_.emplace(name, Place{&tensor, bytes.subspan(tensor.begin, tensor.size), file}).second)
      fail(ErrorCode::kIo, "[{}] has the tensor {} in two of its files", path_, shown(name));
}

const GgufValue* Gguf::find(std::string_view key) const {
  const auto found = headers_.front().values.find(std::string(key));
  return found == headers_.front().values.end() ? nullptr : &found->second;
}

const GgufValue& Gguf::at(std::string_view key) const {
  const GgufValue* found = find(key);
  if (!found) fail(ErrorCode::kIo, "[{}] has no key {}, which the model needs", path_, key);
  return *found;
}

std::string Gguf::text(std::string_view key, const std::string& otherwise) const {
  const GgufValue* found = find(key);
  return found ? found->as_string() : otherwise;
}

std::optional<bool> Gguf::flag(std::string_view key) const {
  const GgufValue* found = find(key);
  return found ? std::optional(found->as_bool()) : std::nullopt;
}

void Gguf::require_unchanged() const {
  for (const MappedFile& file : files_) file.require_unchanged();
}

}  // namespace heddle
