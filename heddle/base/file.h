// Files: a read-only memory map, whole-file read, and a write that is complete or not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace heddle {

// A read-only map of a whole file. Movable; unmaps on destruction. Throws Error(kIo).
class MappedFile {
 public:
  explicit MappedFile(std::string path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Tells the system that these pages are not needed in memory any more (they can be read again).
  void forget(size_t begin, size_t size) const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

std::string read_file(const std::string& path);

// Writes beside `path` and renames: a reader sees the old file or the whole new one.
void write_file(const std::string& path, std::string_view content);

}  // namespace heddle
