// The built program, or the one that HEDDLE_PROGRAM names, run as a child process.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace heddle {

struct Command {
  std::vector<std::string> args;  // behind the program's name
  std::string input;              // on stdin
  std::string output;             // file for stdout; empty: it is captured
  long largest_file = 0;          // bytes a file may have, as where a disk is full; 0: no limit
  double seconds = 600;           // then it is killed: it hangs
  int signal = 0;                 // sent to it as soon as `when` says so
  std::function<bool()> when = {};
};

struct Outcome {
  int code = -1;   // of the exit; -1: it was ended by a signal
  int signal = 0;  // that ended it
  std::string out, err;
};

Outcome run_program(const Command& command);

}  // namespace heddle
