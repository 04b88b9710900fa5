#include "apps/heddle/support/stdin_reader.h"

#include <cerrno>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "apps/heddle/support/input.h"
#include "apps/heddle/support/interrupt.h"

namespace heddle {
namespace {

constexpr int kPatience = 100;  // ms between checks for Ctrl-C, in case another thread got the signal

// A terminal drops the typed text when Ctrl-C is pressed, even between a poll that saw it and the read, and
// the read must not block then. Other processes share stdin's descriptor and would see its mode change, so
// this opens its own.
int open_input() {
  const char* terminal = ::isatty(STDIN_FILENO) != 0 ? ::ttyname(STDIN_FILENO) : nullptr;
  const int own = terminal != nullptr ? ::open(terminal, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
  return own >= 0 ? own : STDIN_FILENO;
}

}  // namespace

StdinReader::StdinReader() : input_(open_input()) {}

StdinReader::~StdinReader() {
  if (input_ != STDIN_FILENO) ::close(input_);
}

StdinReader::Kind StdinReader::read(std::span<char> bytes, size_t& count) {
  for (;;) {
    pollfd input{input_, POLLIN, 0};
    const int ready = ::poll(&input, 1, kPatience);
    if (interrupted()) return Kind::kInterrupted;
    if (ready <= 0) continue;
    const ssize_t n = ::read(input_, bytes.data(), bytes.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) fail_stdin();
    count = size_t(n);
    return n == 0 ? Kind::kEnd : Kind::kBytes;
  }
}

}  // namespace heddle
