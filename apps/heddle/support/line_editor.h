// Reads a line from a terminal, with editing and a history. It uses libedit.
#pragma once

#include <memory>
#include <string>

#include "apps/heddle/support/stdin_reader.h"

namespace heddle {

class LineEditor {
 public:
  enum class Kind { kLine, kEnd, kInterrupted };

  // True if stdin and stdout are a terminal that can move its cursor.
  static bool can_edit();

  explicit LineEditor(StdinReader& input);
  ~LineEditor();
  // Reads a line and remembers it. kInterrupted: Ctrl-C was pressed (interrupt.h).
  Kind read(const char* prompt, std::string& line);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heddle
