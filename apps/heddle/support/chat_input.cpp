#include "apps/heddle/support/chat_input.h"

#include <cstring>
#include <utility>

#include <unistd.h>

#include "apps/heddle/support/output.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

constexpr const char* kFence = "\"\"\"";

}  // namespace

ChatInput::ChatInput() : is_terminal_(::isatty(STDIN_FILENO) != 0) {
  if (LineEditor::can_edit()) editor_.emplace(reader_);
}

ChatInput::Kind ChatInput::read_line(const char* prompt, std::string& line) {
  if (is_terminal_ && !editor_) print(prompt);
  flush_output();
  if (editor_) {
    const LineEditor::Kind kind = editor_->read(prompt, line);
    if (kind == LineEditor::Kind::kInterrupted) return Kind::kInterrupted;
    return kind == LineEditor::Kind::kLine ? Kind::kMessage : Kind::kEnd;
  }
  for (;;) {
    const size_t end = buffer_.find('\n');
    if (end != std::string::npos || (ended_ && !buffer_.empty())) {
      line = buffer_.substr(0, end);
      buffer_.erase(0, end == std::string::npos ? end : end + 1);
      if (line.ends_with('\r')) line.pop_back();
      if (std::exchange(first_, false) && line.starts_with(kByteOrderMark))
        line.erase(0, kByteOrderMark.size());
      return Kind::kMessage;
    }
    if (ended_) return Kind::kEnd;
    char bytes[4096];
    size_t count = 0;
    const StdinReader::Kind kind = reader_.read(bytes, count);
    if (kind == StdinReader::Kind::kInterrupted) return buffer_.clear(), Kind::kInterrupted;
    ended_ = kind == StdinReader::Kind::kEnd;
    buffer_.append(bytes, count);
  }
}

ChatInput::Kind ChatInput::read(std::string& message) {
  message.clear();
  Kind kind = read_line("> ", message);
  if (kind != Kind::kMessage) return kind;
  if (message.starts_with(kFence)) {
    message.erase(0, std::strlen(kFence));
    std::string line;
    while (!message.ends_with(kFence)) {
      kind = read_line("... ", line);
      if (kind == Kind::kInterrupted) return kind;
      if (kind == Kind::kEnd) return Kind::kMessage;
      message += (message.empty() ? "" : "\n") + line;
    }
    message.erase(message.size() - std::strlen(kFence));
    if (message.ends_with('\n')) message.pop_back();
    return Kind::kMessage;
  }
  std::string line;
  while (message.ends_with('\\')) {
    message.back() = '\n';
    kind = read_line("... ", line);
    if (kind == Kind::kInterrupted) return kind;
    if (kind == Kind::kEnd) break;
    message += line;
  }
  return Kind::kMessage;
}

}  // namespace heddle
