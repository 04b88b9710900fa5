// Shows progress on a line of stderr, if that is a terminal.
#pragma once

#include <string>

#include "heddle/base/progress.h"
#include "heddle/base/stopwatch.h"

namespace heddle {

class ProgressLine {
 public:
  // Shows nothing in the first `after_seconds`: what is done by then needs no line.
  explicit ProgressLine(double after_seconds = 0);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { clear(); }

  bool on_terminal() const { return on_terminal_; }
  // Replaces what it showed before. Shows nothing next to a text on the terminal whose line has not ended.
  void show(const std::string& text);
  // Shows how many tokens are done, if there are enough of them to take a while.
  void show_tokens(const char* work, size_t done, size_t all);
  void clear();

 private:
  Stopwatch since_;
  double after_seconds_;
  bool on_terminal_, shown_ = false;
  ProgressText text_;
};

// While it lives, shows what the work of this thread tells (base/progress.h), from its second second on. Ctrl-C ends such work:
// it throws Cancelled.
class ToldProgress {
 public:
  ToldProgress();

 private:
  void show(const Progress& progress);

  ProgressLine line_;
  ProgressText text_;
  Stopwatch since_;
  std::string doing_;
  double began_ = 0, ended_ = -1e9;  // seconds of since_
  ProgressScope scope_;
};

}  // namespace heddle
