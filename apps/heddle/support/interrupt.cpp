#include "apps/heddle/support/interrupt.h"

#include <atomic>
#include <csignal>

namespace heddle {
namespace {

std::atomic<bool> asked = false;

void on_interrupt(int) {
  asked = true;
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

void watch_interrupts() {
  std::signal(SIGINT, on_interrupt);
}
bool interrupted() {
  return asked;
}

void forget_interrupt() {
  asked = false;
  watch_interrupts();
}

}  // namespace heddle
