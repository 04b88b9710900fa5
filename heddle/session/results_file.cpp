#include "heddle/session/results_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"

namespace heddle {

ResultsFile::ResultsFile(std::string path,
                         const std::function<void(std::string_view line, size_t number)>& line)
    : path_(std::move(path)) {
  struct stat info {};
  created_ = ::stat(path_.c_str(), &info) != 0;
  regular_ = created_ || S_ISREG(info.st_mode);
  descriptor_.at = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_.at < 0)
    fail(ErrorCode::kIo, "[{}] cannot open: {}; a file is wanted, in a folder that is there", path_,
         std::strerror(errno));
  if (!regular_) return;
  if (::flock(descriptor_.at, LOCK_EX | LOCK_NB) != 0)
    fail(ErrorCode::kIo, "[{}] is in use by another run; wait for its end or give another file", path_);
  const std::string content = read_file(path_);
  for (size_t number = 1;; ++number) {
    const size_t end = content.find('\n', size_);
    if (end == std::string::npos) break;
    line(std::string_view(content).substr(size_, end - size_), number);
    size_ = end + 1;
  }
  cut_ = content.size() - size_;
  if (cut_ > 0 && ::ftruncate(descriptor_.at, off_t(size_)) != 0) fail_io("repair");
}

ResultsFile::~ResultsFile() {
  if (created_ && size_ == 0) ::unlink(path_.c_str());
}

ResultsFile::Descriptor::~Descriptor() {
  if (at >= 0) ::close(at);
}

void ResultsFile::append(std::string_view line) {
  const std::string bytes = std::string(line) + '\n';
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(descriptor_.at, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      if (regular_ && ::ftruncate(descriptor_.at, off_t(size_)) != 0)
        size_ += done;  // the next run repairs it
      errno = error;
      fail_io("write");
    }
    done += size_t(n);
  }
  if (regular_ && ::fdatasync(descriptor_.at) != 0) fail_io("write");
  size_ += bytes.size();
}

void ResultsFile::fail_io(const char* what) const {
  fail(ErrorCode::kIo, "[{}] cannot {}: {}; the results in it are whole: the same run goes on from there",
       path_, what, std::strerror(errno));
}

}  // namespace heddle
