// The built program, or the one that HEDDLE_PROGRAM names, run as a child process.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace heddle {

// The most that the process may have of a resource, such as RLIMIT_AS.
struct ResourceLimit {
  int resource;
  long most;
};

struct Command {
  std::vector<std::string> args;  // after the program's name
  std::string input;              // on stdin
  std::string input_from = {};    // file or folder for stdin instead; "closed": there is no stdin
  std::string output;             // file for stdout; empty: stdout is captured
  long largest_file = 0;          // bytes that a file may have, like a full disk; 0: no limit
  std::vector<ResourceLimit> limits = {};
  double seconds = 600;  // after that it is killed: it hangs
  int signal = 0;        // sent to it as soon as `when` returns true
  std::function<bool()> when = {};
};

struct Outcome {
  int code = -1;   // exit code; -1: a signal ended it
  int signal = 0;  // the signal that ended it
  std::string out, err;
};

Outcome run_program(const Command& command);

// Returns what it prints. The test fails unless it exits with 0.
std::string output(const std::vector<std::string>& args);

// A text without the breaks of lines that did not fit: what goes on began with so many spaces.
std::string in_long_lines(std::string text, size_t indent = 12);

// Sets a variable of the environment, and gives it back what it was.
class Variable {
 public:
  Variable(const char* name, const std::string& value);
  ~Variable();
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

void expect_in(const std::string& text, const std::string& words);
void expect_words(const std::string& text, const std::vector<std::string>& all);

// The shipped model.
inline const std::string kStoryteller = HEDDLE_SOURCE_DIR "/models/storyteller";

}  // namespace heddle
