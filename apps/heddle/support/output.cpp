#include "apps/heddle/support/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "heddle/base/error.h"
#include "heddle/base/json.h"

namespace heddle {
namespace {

// Called after a call on stdout failed. Returns if a signal was the reason, because then the call can be
// repeated.
void require_interrupted() {
  if (errno != EINTR)
    fail(ErrorCode::kIo, "[stdout] cannot write: {}; what came before may be cut", std::strerror(errno));
  std::clearerr(stdout);
}

bool line_open = false;

using FileId = std::pair<dev_t, ino_t>;

// Identifies the file at the end of all links; nothing if that is no regular file.
std::optional<FileId> id_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  return FileId{found.st_dev, found.st_ino};
}

}  // namespace

void print(std::string_view text) {
  if (!text.empty()) line_open = !text.ends_with('\n');
  for (;;) {
    text.remove_prefix(std::fwrite(text.data(), 1, text.size(), stdout));
    if (text.empty()) return;
    require_interrupted();
  }
}

void print_json(const Json& value) {
  print(value.dump(2) + "\n");
}

bool has_open_line() {
  static const bool is_terminal = ::isatty(STDOUT_FILENO) != 0;
  return is_terminal && line_open;
}

void flush_output() {
  while (std::fflush(stdout) != 0 || std::ferror(stdout)) require_interrupted();
}

void say_written(const std::string& file) {
  flush_output();
  std::fprintf(stderr, "wrote %s\n", file.c_str());
}

void require_none_of(const std::string& path, std::span<const std::string> read, const std::string& what) {
  const std::optional<FileId> own = id_of(path);
  if (!own) return;
  const auto check = [&](const std::string& other) {
    require(id_of(other) != own, "[{}] {} would overwrite {}, which is read; give it another name", what,
            path, other);
  };
  for (const std::string& other : read) {
    check(other);
    std::error_code none;  // what cannot be listed is refused where it is read
    for (const auto& file : std::filesystem::directory_iterator(other, none)) check(file.path().string());
  }
}

}  // namespace heddle
