// Reads what a person types: messages of one or several lines.
#pragma once

#include <optional>
#include <string>

#include "apps/heddle/support/line_editor.h"
#include "apps/heddle/support/stdin_reader.h"

namespace heddle {

class ChatInput {
 public:
  enum class Kind { kMessage, kEnd, kInterrupted };

  // Shows prompts if stdin is a terminal, and edits lines if the terminal can.
  ChatInput();

  // Reads a message. A backslash at the end of a line continues it on the next line, and """ begins and ends
  // a message of several lines. Files of other systems end their lines with CR LF, or begin with a byte-order mark: these
  // are no part of a message. kInterrupted: Ctrl-C was pressed, and the typed text is dropped.
  Kind read(std::string& message);
  bool is_terminal() const { return is_terminal_; }

 private:
  Kind read_line(const char* prompt, std::string& line);

  bool is_terminal_;
  StdinReader reader_;
  std::optional<LineEditor> editor_;
  std::string buffer_;  // bytes that were read but not returned yet
  bool first_ = true;   // no line came yet
  bool ended_ = false;
};

}  // namespace heddle
