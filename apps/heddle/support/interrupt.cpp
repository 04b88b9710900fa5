#include "apps/heddle/support/interrupt.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include <unistd.h>

namespace heddle {
namespace {

// A command that looks at interrupted() ends sooner, and a person still takes the end for the answer to Ctrl-C.
constexpr long kGraceNs = 800'000'000;

std::atomic<bool> asked = false, patient = false, line_shown = false;
std::atomic<const char*> what_stays = nullptr;
timer_t grace;
bool has_grace = false;

// Handlers call only what POSIX lists as safe in one.
void end_now(int) {
  const auto say = [](const char* text) { (void)!::write(STDERR_FILENO, text, ::strlen(text)); };
  if (line_shown) say("\r\033[K");
  say("heddle: interrupted");
  if (const char* stays = what_stays) say("; "), say(stays);
  say("\n");
  ::_exit(kInterruptedCode);
}

void start_grace(long ns) {
  const itimerspec time{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = ns}};
  if (has_grace) ::timer_settime(grace, 0, &time, nullptr);
}

void on_interrupt(int) {
  const int error = errno;
  asked = true;
  std::signal(SIGINT, SIG_DFL);
  if (!patient) start_grace(kGraceNs);
  errno = error;
}

}  // namespace

void watch_interrupts() {
  sigevent alarm{};
  alarm.sigev_notify = SIGEV_SIGNAL;
  alarm.sigev_signo = SIGALRM;
  if (!has_grace) has_grace = ::timer_create(CLOCK_MONOTONIC, &alarm, &grace) == 0;
  std::signal(SIGALRM, end_now);
  std::signal(SIGINT, on_interrupt);
}

bool interrupted() {
  return asked;
}

void forget_interrupt() {
  start_grace(0);
  asked = false;
  std::signal(SIGINT, on_interrupt);
}

void keep_running_on_interrupt() {
  patient = true;
  start_grace(0);
}

void note_what_stays(const char* text) {
  what_stays = text;
}

void note_line_shown(bool shown) {
  line_shown = shown;
}

}  // namespace heddle
