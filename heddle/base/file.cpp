#include "heddle/base/file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "heddle/base/error.h"

namespace heddle {
namespace {

[[noreturn]] void fail_io(const std::string& path, const char* what) {
  fail(ErrorCode::kIo, "[{}] cannot {}: {}", path, what, std::strerror(errno));
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

}  // namespace

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
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
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) fail_io(path, "open");
  std::string content;
  char buffer[1 << 16];
  while (size_t n = std::fread(buffer, 1, sizeof buffer, file.get())) content.append(buffer, n);
  if (std::ferror(file.get())) fail_io(path, "read");
  return content;
}

void write_file(const std::string& path, std::string_view content) {
  const std::string temporary = path + "." + std::to_string(::getpid()) + ".part";
  File file(std::fopen(temporary.c_str(), "wb"));
  if (!file) fail_io(path, "write");
  bool ok = std::fwrite(content.data(), 1, content.size(), file.get()) == content.size();
  ok = std::fflush(file.get()) == 0 && ok;
  ok = ok && ::fsync(::fileno(file.get())) == 0;
  int error = errno;
  ok = std::fclose(file.release()) == 0 && ok;
  ok = ok && std::rename(temporary.c_str(), path.c_str()) == 0;
  if (!ok) {
    if (error == 0) error = errno;
    std::remove(temporary.c_str());
    errno = error;
    fail_io(path, "write");
  }
}

}  // namespace heddle
