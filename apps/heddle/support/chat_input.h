// What a person types: messages of one line or several.
#pragma once

#include <optional>
#include <string>

#include "apps/heddle/support/line_editor.h"
#include "apps/heddle/support/stdin_reader.h"

namespace heddle {

class ChatInput {
 public:
  enum class Kind { kMessage, kEnd, kInterrupted };

  // Prompts are shown where stdin is a terminal; lines are edited where it can do that.
  ChatInput();

  // A line; with a backslash at its end the next one belongs to it, and between lines that begin and end with """ all
  // do. kInterrupted: Ctrl-C was pressed, and what had been typed is gone.
  Kind read(std::string& message);

 private:
  Kind read_line(const char* prompt, std::string& line);

  bool is_terminal_;
  StdinReader reader_;
  std::optional<LineEditor> editor_;
  std::string buffer_;  // read and not yet handed out
  bool ended_ = false;
};

}  // namespace heddle
