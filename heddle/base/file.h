// Files: a read-only memory map, whole-file reads, and writes that are either complete or leave nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace heddle {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FileHandle = std::unique_ptr<std::FILE, CloseFile>;

// A read-only map of a whole file. Movable; unmaps on destruction. Throws Error(kIo).
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

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

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
