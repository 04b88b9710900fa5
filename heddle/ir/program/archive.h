// Fields of heddle's own files. A type describes its fields once; an ArchiveWriter and an ArchiveReader walk
// that description. Numbers are little-endian. A header comes before the fields: magic, version, size and
// XXH3 of the rest.
#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/types.h"

namespace heddle {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in memory");

// Identifies one kind of heddle's files.
struct FileKind {
  std::string_view magic;  // 8 bytes
  u32 version = 0;
  const char* what = "";  // "program": for messages
};

constexpr std::string_view kProgramMagic{"HEDDLE\r\n", 8}, kArtefactMagic{"HEDDLEA\n", 8};

std::string frame(const FileKind& kind, std::string_view fields);
// Returns the bytes after the header. Throws Error(kIo) when the file is of another kind, was cut or was
// changed; Error(kUnsupported) when it has another version.
std::string_view unframe(const FileKind& kind, std::string_view bytes, const std::string& where);
bool is_of_kind(const FileKind& kind, std::string_view bytes);

class ArchiveWriter {
 public:
  std::string out;

  template <class T>
  void raw(T* values, size_t count) {
    out.append(reinterpret_cast<const char*>(values), count * sizeof(T));
  }
  size_t count(size_t n, size_t) {
    u64 stored = n;
    raw(&stored, 1);
    return n;
  }
};

class ArchiveReader {
 public:
  ArchiveReader(const FileKind& kind, std::string_view bytes, const std::string& where)
      : kind_(kind), bytes_(bytes), where_(where) {}

  template <class T>
  void raw(T* values, size_t count) {
    if (count * sizeof(T) > left()) refuse("ends inside a field");
    if (count == 0) return;  // `values` may be null
    std::memcpy(static_cast<void*>(values), bytes_.data() + at_, count * sizeof(T));
    at_ += count * sizeof(T);
  }
  // Reads a count of elements that take at least `bytes` each. It refuses a count that cannot fit into the
  // rest of the file before it allocates memory.
  size_t count(size_t, size_t bytes) {
    u64 n = 0;
    raw(&n, 1);
    if (n > left() / bytes) refuse("counts more things than it has bytes");
    return size_t(n);
  }
  size_t left() const { return bytes_.size() - at_; }
  [[noreturn]] void refuse(const char* why) const {
    fail(ErrorCode::kIo, "[{}] not a {} that heddle wrote: byte {} of {}: {}", where_, kind_.what, at_,
         bytes_.size(), why);
  }

 private:
  const FileKind& kind_;
  std::string_view bytes_;
  const std::string& where_;
  size_t at_ = 0;
};

template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;

template <class Archive>
void field(Archive& a, Number auto& value) {
  a.raw(&value, 1);
}
template <class Archive>
void field(Archive& a, bool& value) {
  u8 stored = value;
  a.raw(&stored, 1);
  if constexpr (std::is_same_v<Archive, ArchiveReader>)
    if (stored > 1) a.refuse("a truth value that is neither 0 nor 1");
  value = stored != 0;
}
template <class Archive>
void field(Archive& a, std::string& text) {
  text.resize(a.count(text.size(), 1));
  a.raw(text.data(), text.size());
}
template <class Archive, class T>
void list(Archive& a, std::vector<T>& values, size_t least_bytes, auto each) {
  values.resize(a.count(values.size(), least_bytes));
  for (T& value : values) each(value);
}
// Writes the file of `value`. The walk over the fields does not change the value.
template <class T>
std::string write_archive(const FileKind& kind, T& value, void (*walk)(ArchiveWriter&, T&)) {
  ArchiveWriter writer;
  walk(writer, value);
  return frame(kind, writer.out);
}
template <class Archive, class T>
void visited(Archive& a, T& value) {
  T::visit(value, [&](const char*, auto& member) { field(a, member); });
}

}  // namespace heddle
