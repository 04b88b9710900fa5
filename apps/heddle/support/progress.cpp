#include "apps/heddle/support/progress.h"

#include <cstdio>

#include <unistd.h>

#include "apps/heddle/support/interrupt.h"
#include "apps/heddle/support/output.h"
#include "heddle/ir/executor/executor.h"

namespace heddle {
namespace {

constexpr size_t kManyTokens = 512;
constexpr double kQuick = 1;  // seconds of work that needs no line

}  // namespace

ProgressLine::ProgressLine(double after_seconds)
    : after_seconds_(after_seconds), on_terminal_(::isatty(STDERR_FILENO) != 0) {}

void ProgressLine::show(const std::string& text) {
  if (!on_terminal_ || since_.seconds() < after_seconds_ || has_open_line()) return;
  shown_ = true;
  note_line_shown(true);
  std::fprintf(stderr, "\r%s\033[K", text.c_str());
  std::fflush(stderr);
}

void ProgressLine::show_tokens(const char* work, size_t done, size_t all) {
  if (all > kManyTokens) show(text_.of({work, "tokens", done, all}, since_.seconds()));
}

void ProgressLine::clear() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
  shown_ = false;
  note_line_shown(false);
}

ToldProgress::ToldProgress() : scope_([this](const Progress& progress) { show(progress); }) {}

void ToldProgress::show(const Progress& progress) {
  if (interrupted()) throw Cancelled("interrupted");
  const double now = since_.seconds();
  // Work that follows other work at once is shown at once.
  if (doing_ != progress.doing) {
    doing_ = progress.doing;
    if (now - ended_ > kQuick) began_ = now;
  }
  const std::string text = text_.of(progress, now);
  if (progress.done >= progress.all) {
    line_.clear();
    doing_.clear();
    ended_ = now;
  } else if (now - began_ >= kQuick) {
    line_.show(text);
  }
}

}  // namespace heddle
