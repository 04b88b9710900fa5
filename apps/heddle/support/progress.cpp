#include "apps/heddle/support/progress.h"

#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "apps/heddle/support/interrupt.h"

namespace heddle {
namespace {

constexpr size_t kManyTokens = 512;

}  // namespace

ProgressLine::ProgressLine(double after_seconds)
    : after_seconds_(after_seconds), on_terminal_(::isatty(STDERR_FILENO) != 0) {}

void ProgressLine::show(const std::string& text) {
  if (!on_terminal_ || since_.seconds() < after_seconds_) return;
  shown_ = true;
  note_line_shown(true);
  std::fprintf(stderr, "\r%s\033[K", text.c_str());
  std::fflush(stderr);
}

void ProgressLine::show_tokens(const char* work, size_t done, size_t all) {
  if (all > kManyTokens) show(fmt::format("{}: {} of {} tokens", work, done, all));
}

void ProgressLine::clear() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
  shown_ = false;
  note_line_shown(false);
}

}  // namespace heddle
