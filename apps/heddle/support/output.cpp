#include "apps/heddle/support/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "heddle/base/error.h"

namespace heddle {
namespace {

// Called after a call on stdout failed. Returns if a signal was the reason, because then the call can be
// repeated.
void require_interrupted() {
  if (errno != EINTR)
    fail(ErrorCode::kIo, "[stdout] cannot write: {}; what came before may be cut", std::strerror(errno));
  std::clearerr(stdout);
}

}  // namespace

void print(std::string_view text) {
  for (;;) {
    text.remove_prefix(std::fwrite(text.data(), 1, text.size(), stdout));
    if (text.empty()) return;
    require_interrupted();
  }
}

void flush_output() {
  while (std::fflush(stdout) != 0 || std::ferror(stdout)) require_interrupted();
}

}  // namespace heddle
