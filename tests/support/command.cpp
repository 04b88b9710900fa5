#include "tests/support/command.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heddle/base/invariant.h"

namespace heddle {
namespace {

struct Pipe {
  std::array<int, 2> end;
  Pipe() { HEDDLE_CHECK(::pipe2(end.data(), O_CLOEXEC) == 0); }
  ~Pipe() { close_read(), close_write(); }
  void close_read() { close_one(end[0]); }
  void close_write() { close_one(end[1]); }

 private:
  static void close_one(int& descriptor) {
    if (descriptor >= 0) ::close(std::exchange(descriptor, -1));
  }
};

[[noreturn]] void become(const Command& command, int in, int out, int err) {
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGINT, SIG_DFL);  // a job in the background ignores it, and so would the child
  if (!command.output.empty()) out = ::open(command.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const bool is_closed = command.input_from == "closed";
  if (!command.input_from.empty() && !is_closed) in = ::open(command.input_from.c_str(), O_RDONLY);
  ::dup2(in, 0), ::dup2(out, 1), ::dup2(err, 2);
  if (is_closed) ::close(0);
  const auto set = [](int resource, long most) {
    const rlimit limit{rlim_t(most), rlim_t(most)};
    ::setrlimit(__rlimit_resource_t(resource), &limit);
  };
  if (command.largest_file > 0) set(RLIMIT_FSIZE, command.largest_file);
  for (const ResourceLimit& limit : command.limits) set(limit.resource, limit.most);
  const char* carried = std::getenv("HEDDLE_PROGRAM");
  const char* program = carried ? carried : HEDDLE_PROGRAM;
  std::vector<char*> args = {const_cast<char*>(program)};
  for (const std::string& arg : command.args) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);
  ::execv(program, args.data());
  ::_exit(127);
}

// Reads both ends until the child has closed them, and sends the signal when it is due. Returns false when
// the time is over.
bool read_both(Pipe& out, Pipe& err, Outcome& outcome, const Command& command, pid_t child) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(command.seconds);
  bool sent = command.signal == 0;
  std::array<pollfd, 2> polls = {pollfd{out.end[0], POLLIN, 0}, pollfd{err.end[0], POLLIN, 0}};
  std::array<std::string*, 2> texts = {&outcome.out, &outcome.err};
  while (polls[0].fd >= 0 || polls[1].fd >= 0) {
    if (std::chrono::steady_clock::now() > end) return false;
    if (!sent && command.when()) sent = ::kill(child, command.signal) == 0;
    ::poll(polls.data(), 2, sent ? 100 : 5);
    for (size_t i = 0; i < 2; ++i) {
      if (polls[i].fd < 0 || polls[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t n = ::read(polls[i].fd, buffer, sizeof buffer);
      if (n > 0)
        texts[i]->append(buffer, size_t(n));
      else
        polls[i].fd = -1;
    }
  }
  return true;
}

}  // namespace

Outcome run_program(const Command& command) {
  Pipe in, out, err;
  const pid_t child = ::fork();
  HEDDLE_CHECK(child >= 0);
  if (child == 0) become(command, in.end[0], out.end[1], err.end[1]);
  in.close_read(), out.close_write(), err.close_write();
  // The input is smaller than a pipe's buffer, so writing does not block; the child may not read it.
  const auto old = ::signal(SIGPIPE, SIG_IGN);
  [[maybe_unused]] const ssize_t written = ::write(in.end[1], command.input.data(), command.input.size());
  ::signal(SIGPIPE, old);
  in.close_write();
  Outcome outcome;
  if (!read_both(out, err, outcome, command, child)) ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  return outcome;
}

std::string output(const std::vector<std::string>& args) {
  const Outcome outcome = run_program({.args = args});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.out;
}

std::string in_long_lines(std::string text, size_t indent) {
  const std::string broken = "\n" + std::string(indent, ' ');
  for (size_t at = 0; (at = text.find(broken, at)) != std::string::npos;)
    text.replace(at, broken.size(), " ");
  return text;
}

Variable::Variable(const char* name, const std::string& value) : name_(name) {
  if (const char* before = std::getenv(name)) before_ = before;
  ::setenv(name, value.c_str(), 1);
}

Variable::~Variable() {
  before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_);
}

void expect_in(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << "no \"" << words << "\" in\n" << text;
}

void expect_words(const std::string& text, const std::vector<std::string>& all) {
  for (const std::string& words : all) expect_in(text, words);
}

}  // namespace heddle
