#include "apps/heddle/support/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "heddle/base/error.h"

namespace heddle {
namespace {

void require_output(bool ok) {
  if (!ok)
    fail(ErrorCode::kIo, "[stdout] cannot write: {}; what came before may be cut", std::strerror(errno));
}

}  // namespace

void print(std::string_view text) {
  require_output(std::fwrite(text.data(), 1, text.size(), stdout) == text.size());
}

void flush_output() {
  require_output(std::fflush(stdout) == 0 && !std::ferror(stdout));
}

}  // namespace heddle
