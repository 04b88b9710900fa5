// Bytes from stdin, until somebody presses Ctrl-C (interrupt.h).
#pragma once

#include <cstddef>
#include <span>

namespace heddle {

class StdinReader {
 public:
  enum class Kind { kBytes, kEnd, kInterrupted };

  StdinReader();
  ~StdinReader();
  StdinReader(const StdinReader&) = delete;
  StdinReader& operator=(const StdinReader&) = delete;

  // Waits for bytes; `count` says how many came. Throws Error where stdin cannot be read.
  Kind read(std::span<char> bytes, size_t& count);

 private:
  int input_;
};

}  // namespace heddle
