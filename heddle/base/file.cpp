#include "heddle/base/file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <dirent.h>
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
    case ENOMEM:
      return "; allow more address space (ulimit -v)";
    default:
      return "";
  }
}

[[noreturn]] void fail_io(const std::string& path, const std::string& what) {
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
  if (!ok) fail_io(path_, fmt::format("map its {} bytes", size_));
  data_ = static_cast<const std::byte*>(data);
  version_ = version_of(info);
  watch_ = PageWatch(data_, size_);
}

MappedFile::Version MappedFile::version_of(const struct stat& info) {
  return {info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

void MappedFile::require_unchanged() const {
  struct stat info {};
  const bool is_there = ::stat(path_.c_str(), &info) == 0;
  const Version now = is_there ? version_of(info) : version_;
  const bool same_file = now.device == version_.device && now.node == version_.node;
  if (!watch_.lost() && (!same_file || now == version_)) return;
  fail(ErrorCode::kIo,
       "[{}] the file changed while it was read: it had {} bytes{}; try again when nothing writes to it",
       path_, size_, same_file ? fmt::format(" and has {}", now.size) : " and cannot be read to its end");
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      version_(other.version_),
      watch_(std::move(other.watch_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(version_, other.version_);
  std::swap(watch_, other.watch_);
  return *this;
}

MappedFile::~MappedFile() {
  watch_ = {};  // before others can have the addresses
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::forget(size_t begin, size_t size) const {
  const size_t page = size_t(::sysconf(_SC_PAGESIZE));
  size_t first = (begin + page - 1) / page * page, last = (begin + size) / page * page;
  if (first < last) ::madvise(const_cast<std::byte*>(data_) + first, last - first, MADV_DONTNEED);
}

namespace {

// 0 for a path that names nothing.
mode_t mode_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) return info.st_mode;
  if (errno != ENOENT && errno != ENOTDIR) fail_io(path, "look at it");
  return 0;
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

}  // namespace

bool path_exists(const std::string& path) {
  return mode_of(path) != 0;
}

bool is_folder(const std::string& path) {
  return S_ISDIR(mode_of(path));
}

bool is_file(const std::string& path) {
  return S_ISREG(mode_of(path));
}

std::vector<std::string> names_in(const std::string& folder) {
  const std::unique_ptr<DIR, CloseFolder> open(::opendir(folder.c_str()));
  if (!open) fail_io(folder, "list it");
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  if (errno != 0) fail_io(folder, "list it");
  std::ranges::sort(names);
  return names;
}

std::string read_file(const std::string& path) {
  FileHandle file(std::fopen(path.c_str(), "rb"));
  if (!file) fail_io(path, "open");
  constexpr size_t kPiece = size_t{1} << 16;
  std::string content;
  size_t used = 0;
  for (size_t n = kPiece; n > 0; used += n) {
    content.resize(used + kPiece);
    n = std::fread(content.data() + used, 1, kPiece, file.get());
  }
  content.resize(used);
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
