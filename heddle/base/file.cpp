#include "heddle/base/file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "heddle/base/error.h"

namespace heddle {
namespace {

const char* remedy(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return "; is the path right, and its folder there?";
    case EACCES:
    case EPERM:
      return "; its owner can allow it (chmod)";
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return "; free some space or write elsewhere";
    default:
      return "";
  }
}

[[noreturn]] void fail_io(const std::string& path, const char* what) {
  const int error = errno;
  fail(ErrorCode::kIo, "[{}] cannot {}: {}{}", path, what, std::strerror(error), remedy(error));
}

}  // namespace

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe would block
  if (descriptor < 0) fail_io(path_, "open");
  struct stat info {};
  bool ok = ::fstat(descriptor, &info) == 0;
  if (ok && !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    fail(ErrorCode::kIo, "[{}] is not a regular file", path_);
  }
  size_ = ok ? size_t(info.st_size) : 0;
  void* data = nullptr;
  if (ok && size_ > 0) {
    data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    ok = data != MAP_FAILED;
  }
  ::close(descriptor);
  if (!ok) fail_io(path_, "map");
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::forget(size_t begin, size_t size) const {
  const size_t page = size_t(::sysconf(_SC_PAGESIZE));
  size_t first = (begin + page - 1) / page * page, last = (begin + size) / page * page;
  if (first < last) ::madvise(const_cast<std::byte*>(data_) + first, last - first, MADV_DONTNEED);
}

std::string read_file(const std::string& path) {
  FileHandle file(std::fopen(path.c_str(), "rb"));
  if (!file) fail_io(path, "open");
  std::string content;
  char buffer[1 << 16];
  while (size_t n = std::fread(buffer, 1, sizeof buffer, file.get())) content.append(buffer, n);
  if (std::ferror(file.get())) fail_io(path, "read");
  return content;
}

OutputFile::OutputFile(std::string path) : path_(std::move(path)), temporary_(path_) {
  struct stat info {};
  if (::stat(path_.c_str(), &info) != 0 || S_ISREG(info.st_mode))
    temporary_ += fmt::format(".{}.part", ::getpid());
  file_.reset(std::fopen(temporary_.c_str(), "wb"));
  if (!file_) fail_io(path_, "write");
}

OutputFile::~OutputFile() {
  if (file_ && temporary_ != path_) std::remove(temporary_.c_str());
}

void OutputFile::append(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) fail_io(path_, "write");
}

void OutputFile::commit() {
  if (std::fflush(file_.get()) != 0) fail_io(path_, "write");
  if (temporary_ != path_) {
    if (::fsync(::fileno(file_.get())) != 0) fail_io(path_, "write");
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail_io(path_, "write");
  }
  file_.reset();
}

void write_file(const std::string& path, std::string_view content) {
  OutputFile file(path);
  file.append(content);
  file.commit();
}

}  // namespace heddle
