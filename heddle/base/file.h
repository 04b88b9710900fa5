// Files: a read-only memory map, whole-file reads, and writes that are either complete or leave nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

#include "heddle/base/mapped_pages.h"

namespace heddle {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FileHandle = std::unique_ptr<std::FILE, CloseFile>;

// A read-only map of a whole file. Movable; unmaps on destruction. Throws Error(kIo). If the file gets shorter, what was
// there reads as zeros (mapped_pages.h), so a reader ends with require_unchanged().
class MappedFile {
 public:
  explicit MappedFile(std::string path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Tells the system that these pages may leave memory; they can be read again.
  void forget(size_t begin, size_t size) const;
  // Throws Error when the file has changed since it was opened. A new file under the same name is no change.
  void require_unchanged() const;
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  // Returns read(text()). If the file changed meanwhile, this throws what require_unchanged() does, whatever `read` made
  // of it.
  template <class Read>
  auto read(Read&& read) const {
    try {
      auto made = read(text());
      require_unchanged();
      return made;
    } catch (...) {
      require_unchanged();
      throw;
    }
  }

 private:
  // Tells a file's content from others as far as the system keeps account of it.
  struct Version {
    uint64_t device = 0, node = 0;
    int64_t size = 0, seconds = 0, nanoseconds = 0;
    bool operator==(const Version&) const = default;
  };
  static Version version_of(const struct stat& info);

  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  Version version_;
  PageWatch watch_;
};

// Say what a path names, links followed. They throw Error(kIo) where the system does not say, as in a folder that this user
// may not read.
bool path_exists(const std::string& path);
bool is_folder(const std::string& path);
bool is_file(const std::string& path);
// Names of what a folder has, sorted. Throws Error(kIo).
std::vector<std::string> names_in(const std::string& folder);

std::string read_file(const std::string& path);

// A file that is written in pieces under a temporary name in the same folder, and renamed to `path` by
// commit(). A reader sees either the old file or the whole new one. Without a commit nothing is left. A path
// that is not a regular file (/dev/stdout, a pipe) is written directly. Throws Error(kIo).
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  void append(std::span<const std::byte> bytes);
  void append(std::string_view text) { append(std::as_bytes(std::span(text))); }
  void commit();

 private:
  std::string path_, temporary_;  // equal when the file is written directly
  FileHandle file_;
};

// Writes an OutputFile in one piece.
void write_file(const std::string& path, std::string_view content);

}  // namespace heddle
