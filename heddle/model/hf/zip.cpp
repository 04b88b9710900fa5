#include "heddle/model/hf/zip.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/base/json.h"

namespace heddle {
namespace {

// Structures of PKWARE's APPNOTE 6.3: the end of the directory, its 64-bit form and the place of that, an entry of the
// directory, and the header in front of a file.
constexpr std::string_view kEnd("PK\5\6", 4), kEnd64("PK\6\6", 4), kPlace64("PK\6\7", 4), kEntry("PK\1\2", 4),
    kFile("PK\3\4", 4);
constexpr size_t kEndBytes = 22, kPlaceBytes = 20, kEnd64Bytes = 56, kEntryBytes = 46, kFileBytes = 30;
constexpr size_t kMostComment = 0xffff;
constexpr uint64_t kIn64Bits = 0xffffffff;  // a number of 32 bits that stands among the extra fields instead

class ArchiveReader {
 public:
  ArchiveReader(std::span<const std::byte> bytes, const std::string& path)
      : text_(reinterpret_cast<const char*>(bytes.data()), bytes.size()), path_(path) {}

  std::map<std::string, ZipEntry> read() const {
    const Directory directory = find_directory();
    std::map<std::string, ZipEntry> files;
    uint64_t at = directory.begin;
    for (uint64_t i = 0; i < directory.count; ++i) {
      const std::string_view entry = part(at, kEntryBytes, "an entry of its directory");
      require(entry.starts_with(kEntry), "entry {} of its directory does not begin as one", i);
      const uint64_t name = number(entry, 28, 2), extra = number(entry, 30, 2),
                     comment = number(entry, 32, 2);
      const std::string_view rest = part(at + kEntryBytes, name + extra, "an entry of its directory");
      add(files, entry, rest.substr(0, size_t(name)), rest.substr(size_t(name)));
      at += kEntryBytes + name + extra + comment;
    }
    return files;
  }

 private:
  struct Directory {
    uint64_t count = 0, begin = 0;
  };

  template <class... Args>
  void require(bool ok, fmt::format_string<Args...> format, Args&&... args) const {
    if (!ok) fail(ErrorCode::kIo, "[{}] {}", path_, fmt::format(format, std::forward<Args>(args)...));
  }
  std::string_view part(uint64_t begin, uint64_t size, const char* what) const {
    require(begin <= text_.size() && size <= text_.size() - begin,
            "{} lies at byte {}, {} long; the file has {} (was it cut short?)", what, begin, size,
            text_.size());
    return text_.substr(size_t(begin), size_t(size));
  }
  static uint64_t number(std::string_view bytes, size_t at, int size) {
    uint64_t value = 0;
    for (int i = 0; i < size; ++i) value |= uint64_t(uint8_t(bytes[at + size_t(i)])) << (8 * i);
    return value;
  }

  Directory find_directory() const {
    const size_t first = text_.size() - std::min(text_.size(), kEndBytes + kMostComment);
    const size_t at = text_.size() < kEndBytes ? text_.npos : text_.rfind(kEnd, text_.size() - kEndBytes);
    require(at != text_.npos && at >= first, "has no directory of a zip file at its end (was it cut short?)");
    const std::string_view end = text_.substr(at, kEndBytes);
    const Directory found{number(end, 10, 2), number(end, 16, 4)};
    if (at < kPlaceBytes || !text_.substr(at - kPlaceBytes).starts_with(kPlace64)) return found;
    const std::string_view end64 =
        part(number(text_, at - kPlaceBytes + 8, 8), kEnd64Bytes, "the end of its directory");
    require(end64.starts_with(kEnd64), "the end of its directory does not begin as one");
    return {number(end64, 32, 8), number(end64, 48, 8)};
  }

  // Replaces those of the three numbers that do not fit 32 bits.
  void widen(std::string_view extra, std::initializer_list<uint64_t*> numbers) const {
    while (extra.size() >= 4) {
      const uint64_t id = number(extra, 0, 2), size = number(extra, 2, 2);
      require(size <= extra.size() - 4, "an extra field of its directory is longer than all");
      std::string_view field = extra.substr(4, size_t(size));
      extra.remove_prefix(4 + size_t(size));
      if (id != 1) continue;
      for (uint64_t* value : numbers) {
        if (*value != kIn64Bits) continue;
        require(field.size() >= 8, "a size of its directory is not there");
        *value = number(field, 0, 8);
        field.remove_prefix(8);
      }
      return;
    }
  }

  void add(std::map<std::string, ZipEntry>& files, std::string_view entry, std::string_view name,
           std::string_view extra) const {
    const std::string shown(name);
    uint64_t packed = number(entry, 20, 4), size = number(entry, 24, 4), header = number(entry, 42, 4);
    widen(extra, {&size, &packed, &header});
    require((number(entry, 8, 2) & 1) == 0, "{} is encrypted", brief(shown));
    require(number(entry, 10, 2) == 0 && packed == size,
            "{} is compressed; torch.save stores files as they are", brief(shown));
    const auto sum = uint32_t(number(entry, 16, 4));
    const std::string_view local = part(header, kFileBytes, "the header of a file");
    require(local.starts_with(kFile), "there is no file where {} is said to be", brief(shown));
    // Both fit 64 bits, as the header lies in the file.
    const uint64_t begin = header + kFileBytes + number(local, 26, 2) + number(local, 28, 2);
    part(begin, size, "a file");
    require(files.try_emplace(shown, ZipEntry{size_t(begin), size_t(size), sum}).second, "has two files {}",
            brief(shown));
  }

  std::string_view text_;
  const std::string& path_;
};

}  // namespace

bool looks_like_zip(std::span<const std::byte> bytes) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).starts_with(kFile);
}

std::map<std::string, ZipEntry> read_zip(std::span<const std::byte> bytes, const std::string& path) {
  return ArchiveReader(bytes, path).read();
}

}  // namespace heddle
