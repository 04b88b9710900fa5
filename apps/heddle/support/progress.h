// Shows progress on a line of stderr, if that is a terminal.
#pragma once

#include <string>

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
  // Replaces what it showed before.
  void show(const std::string& text);
  // Shows how many tokens are done, if there are enough of them to take a while.
  void show_tokens(const char* work, size_t done, size_t all);
  void clear();

 private:
  Stopwatch since_;
  double after_seconds_;
  bool on_terminal_, shown_ = false;
};

}  // namespace heddle
