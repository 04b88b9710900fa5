#include "heddle/model/hf/safetensors.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/memory.h"
#include "heddle/base/placeholder.h"

namespace heddle {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the format's own reader
constexpr size_t kAlignment = 8;                   // alignment of the data that a writer makes

// A tensor's name in messages.
struct Place {
  const std::string& path;
  const std::string& name;

  template <class... Args>
  void require(bool ok, fmt::format_string<Args...> format, Args&&... args) const {
    if (ok) return;
    fail(ErrorCode::kIo, "[{}] tensor {} {}", path, brief(name),
         fmt::format(format, std::forward<Args>(args)...));
  }
};

uint64_t read_length(std::span<const std::byte> bytes) {
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= uint64_t(bytes[i]) << (8 * i);
  return length;
}

TensorEntry entry_of(const Json& type, const Place& place) {
  TensorEntry entry;
  if (type.is_string()) entry = entry_of_type(type.as_string());
  if (entry.bits > 0) return entry;
  place.require(type.is_string(), "has a 'dtype' that is not a string: {}", brief(type));
  place.require(false, "has the unknown dtype {}; known are F32, F16, BF16, ...", brief(type));
  return entry;
}

std::vector<uint64_t> unsigned_list(const Json& entry, const char* key, const Place& place) {
  const Json* found = entry.find(key);
  place.require(found, "has no '{}'", key);
  place.require(found->is_array(), "has '{}' = {}; it must be a list of numbers", key, found->kind());
  std::vector<uint64_t> values;
  for (const Json& item : found->items()) {
    const std::optional<int64_t> number = item.to_int();
    place.require(number && *number >= 0, "has {} in '{}'; numbers from 0 to 2^63 - 1 are allowed",
                  brief(item), key);
    values.push_back(uint64_t(*number));
  }
  return values;
}

// Bytes that a tensor of this shape takes.
uint64_t byte_size(std::span<const int64_t> shape, const TensorEntry& type, const Place& place) {
  uint64_t bits = uint64_t(type.bits);
  bool overflow = false;
  for (int64_t dim : shape) overflow |= __builtin_mul_overflow(bits, uint64_t(dim), &bits);
  place.require(!overflow, "has the shape {}, whose size overflows", shape_text(shape));
  place.require(bits % 8 == 0, "has the shape {} of {}, which is no whole number of bytes", shape_text(shape),
                type.type);
  return bits / 8;
}

// `data_begin` and `data_size` say where the file has the bytes of all tensors.
TensorEntry parse_entry(const Json& json, size_t data_begin, size_t data_size, const Place& place) {
  place.require(json.is_object(), "is described by {}; it must be an object", json.kind());
  const Json* dtype = json.find("dtype");
  place.require(dtype, "has no 'dtype'");
  TensorEntry entry = entry_of(*dtype, place);
  std::vector<uint64_t> shape = unsigned_list(json, "shape", place);
  std::vector<uint64_t> offsets = unsigned_list(json, "data_offsets", place);
  place.require(offsets.size() == 2, "has {} 'data_offsets'; it must have 2", offsets.size());
  place.require(offsets[0] <= offsets[1] && offsets[1] <= data_size,
                "lies at bytes {} to {} of the data; the file holds {} (was it cut short?)", offsets[0],
                offsets[1], data_size);

  entry.shape.assign(shape.begin(), shape.end());
  entry.begin = data_begin + offsets[0];
  entry.size = offsets[1] - offsets[0];
  uint64_t wanted = byte_size(entry.shape, entry, place);
  place.require(entry.size == wanted, "has {} bytes; its shape {} of {} takes {}", entry.size,
                shape_text(entry.shape), entry.type, wanted);
  return entry;
}

// The tensors must cover the data without gap or overlap: a file cannot carry bytes that no name reaches.
void check_cover(const TensorTable& header, size_t data_begin, size_t file_size, const std::string& path) {
  std::vector<std::pair<const std::string*, const TensorEntry*>> by_offset;
  for (const auto& [name, entry] : header.tensors) by_offset.emplace_back(&name, &entry);
  std::sort(by_offset.begin(), by_offset.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second->begin, a.second->size) < std::pair(b.second->begin, b.second->size);
  });
  size_t end = data_begin;
  for (const auto& [name, entry] : by_offset) {
    Place{path, *name}.require(entry->begin == end,
                               "starts at byte {}, but the one before it ends at {}; "
                               "tensors must follow each other without gap or overlap",
                               entry->begin, end);
    end += entry->size;
  }
  if (end != file_size)
    fail(ErrorCode::kIo, "[{}] the tensors end at byte {}, the file at {}; both must be the same", path, end,
         file_size);
}

std::map<std::string, std::string> parse_metadata(const Json& json, const std::string& path) {
  std::map<std::string, std::string> metadata;
  const auto require_map = [&](bool ok) {
    if (!ok) fail(ErrorCode::kIo, "[{}] '__metadata__' must map strings to strings", path);
  };
  require_map(json.is_object());
  for (const auto& [key, value] : json.members()) {
    require_map(value.is_string());
    metadata[key] = value.as_string();
  }
  return metadata;
}

}  // namespace

TensorTable parse_safetensors_header(std::span<const std::byte> bytes, const std::string& path) {
  refuse_placeholder(path, {reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 64)});
  if (bytes.size() < kLengthBytes)
    fail(ErrorCode::kIo, "[{}] is no safetensors file: {} bytes; the header alone takes more", path,
         bytes.size());
  const uint64_t length = read_length(bytes);
  const size_t rest = bytes.size() - kLengthBytes;
  if (length > kMaxHeaderBytes || length > rest)
    fail(ErrorCode::kIo,
         "[{}] says that its header has {} bytes; after the length there are {}, and the limit is {}", path,
         length, rest, kMaxHeaderBytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  const Json json = parse_json(text, path, {.depth = 32});
  if (!json.is_object())
    fail(ErrorCode::kIo, "[{}] the header is {}; it must be an object", path, json.kind());

  TensorTable header;
  const size_t data_begin = kLengthBytes + length;
  for (const auto& [name, value] : json.members()) {
    if (name == "__metadata__")
      header.metadata = parse_metadata(value, path);
    else
      header.tensors.emplace_hint(
          header.tensors.end(), name,
          parse_entry(value, data_begin, bytes.size() - data_begin, Place{path, name}));
  }
  check_cover(header, data_begin, bytes.size(), path);
  return header;
}

namespace {

// Checks `tensors` and describes them in the order of their bytes.
std::string header_text(std::span<const TensorView> tensors,
                        const std::map<std::string, std::string>& metadata, const std::string& path) {
  std::map<std::string, Json> header;
  for (const auto& [key, value] : metadata) header["__metadata__"][key] = value;
  uint64_t offset = 0;
  for (const TensorView& tensor : tensors) {
    const TensorEntry type = entry_of_type(info_of(tensor.dtype).safetensors);
    require(type.bits > 0, "[{}] tensor {} is {}, which safetensors has no type for", path,
            brief(tensor.name), name(tensor.dtype));
    const uint64_t wanted = byte_size(tensor.shape, type, Place{path, tensor.name});
    require(tensor.data.size() == wanted, "[{}] tensor {} has {} bytes; its shape {} of {} takes {}", path,
            brief(tensor.name), tensor.data.size(), shape_text(tensor.shape), type.type, wanted);
    require(!header.contains(tensor.name), "[{}] two tensors are named {}; each name may stand once", path,
            brief(tensor.name));
    header[tensor.name] = Json::object({{"data_offsets", Json::array({offset, offset + wanted})},
                                        {"dtype", type.type},
                                        {"shape", tensor.shape}});
    offset += wanted;
  }
  std::string text;
  try {
    text = Json(header).dump_strictly();
  } catch (const Error& error) {
    fail(ErrorCode::kInvalidArgument, "[{}] a name or metadata is not UTF-8: {}", path, error.what());
  }
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  return text;
}

}  // namespace

void write_safetensors(const std::string& path, std::vector<TensorView> tensors,
                       const std::map<std::string, std::string>& metadata) {
  // Wide elements come first, so that each tensor is aligned without gaps.
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorView& a, const TensorView& b) {
    return size_of(a.dtype) > size_of(b.dtype);
  });
  const std::string text = header_text(tensors, metadata, path);
  std::string length(kLengthBytes, '\0');
  for (size_t i = 0; i < kLengthBytes; ++i) length[i] = char(uint8_t(text.size() >> (8 * i)));

  OutputFile file(path);
  file.append(length);
  file.append(text);
  for (const TensorView& tensor : tensors) file.append(tensor.data);
  file.commit();
}

}  // namespace heddle
