// Reads bytes from stdin until Ctrl-C is pressed (interrupt.h).
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

  // Waits for bytes and sets `count`. Throws Error when stdin cannot be read.
  Kind read(std::span<char> bytes, size_t& count);

 private:
  int input_;
};

}  // namespace heddle
