#include "apps/heddle/support/thoughts.h"

#include <cstdio>

#include <unistd.h>

#include "apps/heddle/support/output.h"

namespace heddle {
namespace {

void put(const char* terminal_only, const std::string& text) {
  const bool is_terminal = ::isatty(STDERR_FILENO) != 0;
  std::fputs(((is_terminal ? terminal_only : "") + text).c_str(), stderr);
  std::fflush(stderr);
}

constexpr const char *kDim = "\033[2m", *kPlain = "\033[0m";

}  // namespace

void Thoughts::show(const std::string& text) {
  flush_output();
  put(kDim, (shown_ ? "" : "(thinking) ") + text);
  shown_ = true;
}

void Thoughts::end() {
  if (!shown_) return;
  put(kPlain, "\n");
  shown_ = false;
}

}  // namespace heddle
