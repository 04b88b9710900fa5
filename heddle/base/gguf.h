// A GGUF file, llama.cpp's format of a whole model: metadata as keys and values, and tensors, many of them in blocks of codes.
// This reads the container. What keys mean is for text/gguf_vocabulary.h and model/hf/gguf_config.h, what blocks mean for
// model/hf/gguf_blocks.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/file.h"

namespace heddle {

// True for an existing file that is named *.gguf.
bool is_gguf(const std::string& path);

// Elements are stored in blocks of `elems`, each of `bytes`.
struct GgufType {
  uint32_t id;
  const char* name;
  int elems, bytes;
};
// The types that heddle reads.
std::span<const GgufType> gguf_types();

struct GgufTensor {
  const GgufType* type = nullptr;
  std::vector<int64_t> shape;  // the last dimension is the one whose elements are adjacent
  size_t begin = 0, size = 0;  // bytes in the file
};

// A value where it lies in the file. Reading it as another kind throws Error(kIo) that names file and key.
class GgufValue {
 public:
  // Numbers of the format.
  enum class Type : uint32_t {
    kU8,
    kI8,
    kU16,
    kI16,
    kU32,
    kI32,
    kF32,
    kBool,
    kString,
    kArray,
    kU64,
    kI64,
    kF64
  };

  bool is_array() const { return is_array_; }
  size_t size() const { return count_; }  // members of a list; else 1
  int64_t as_int(int64_t min, int64_t max) const;
  double as_number() const;  // the decimal number that an f32 was written for: 1e-5 and not 9.99999975e-6
  bool as_bool() const;
  std::string as_string() const;
  std::vector<int64_t> ints() const;
  std::vector<double> numbers() const;
  std::vector<std::string_view> strings() const;

 private:
  friend class GgufReader;
  [[noreturn]] void fail_as(const char* wanted) const;
  void require_one(const char* wanted) const;
  std::optional<int64_t> int_at(size_t index) const;
  double number_at(size_t index) const;

  std::string where_;  // file and key
  Type type_ = Type::kU8;
  bool is_array_ = false;
  size_t count_ = 1;
  std::span<const std::byte> bytes_;  // each string after its length in eight bytes
};

struct GgufHeader {
  std::map<std::string, GgufValue> values;
  std::map<std::string, GgufTensor> tensors;
};

// Throws Error that names `path`: kIo when the bytes are no such file, or not all of it; kUnsupported for a tensor of a type that
// is not read. The values lie in `bytes`.
GgufHeader parse_gguf(std::span<const std::byte> bytes, const std::string& path);

// A mapped file, or all files of a model that is split into several (name-00001-of-00003.gguf), whose first has the metadata.
class Gguf {
 public:
  explicit Gguf(const std::string& path);
  // One file's bytes, which the caller keeps.
  Gguf(std::span<const std::byte> bytes, const std::string& path);

  const std::string& path() const { return path_; }  // as it was given
  // Null if there is no such key.
  const GgufValue* find(std::string_view key) const;
  // Throws Error(kIo) if there is none.
  const GgufValue& at(std::string_view key) const;
  std::string text(std::string_view key, const std::string& otherwise) const;
  std::optional<bool> flag(std::string_view key) const;

  struct Place {
    const GgufTensor* tensor = nullptr;
    std::span<const std::byte> bytes;  // the tensor's
    const MappedFile* file = nullptr;  // null for a caller's bytes
  };
  const std::map<std::string, Place>& tensors() const { return tensors_; }
  // Throws Error when a file has changed since it was opened.
  void require_unchanged() const;

 private:
  void add(GgufHeader header, std::span<const std::byte> bytes, const MappedFile* file);

  std::string path_;
  std::vector<MappedFile> files_;
  std::vector<GgufHeader> headers_;
  std::map<std::string, Place> tensors_;
};

}  // namespace heddle
