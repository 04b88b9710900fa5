// The program: runs the command that its arguments name, and turns an error into a message and an exit code.
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/input.h"
#include "apps/heddle/support/interrupt.h"
#include "apps/heddle/support/output.h"
#include "apps/heddle/support/progress.h"
#include "apps/heddle/support/python_part.h"
#include "heddle/base/error.h"
#include "heddle/base/failure.h"
#include "heddle/base/thread.h"
#include "heddle/engine/builtins.h"

namespace heddle {

void add_commands(CLI::App& app);

namespace {

enum ExitCode { kDone = 0, kFailed = 1, kWrongArguments = 2, kInterrupted = kInterruptedCode };

constexpr const char* kAbout =
    "heddle turns a transformer into one checked program of tile instructions and runs it.";
constexpr const char* kFooter =
    "MODEL is the folder that save_pretrained writes: config.json, *.safetensors, tokenizer.json.\n"
    "\n"
    "Examples:\n"
    "  heddle generate models/storyteller --prompt \"Once upon a time\"\n"
    "  heddle inspect models/storyteller\n"
    "  heddle generate --help\n"
    "\n"
    "Exit codes: 0 done; 1 failed (a file, a model, a run); 2 wrong arguments; 130 interrupted.\n"
    "Results go to stdout, messages and progress to stderr.";

int run(int argc, char** argv) {
  register_builtins();
  const std::string python = hand_to_python(argc, argv);
  require(python.empty(), "{}", python);
  const ToldProgress progress;
  if (!run_command(argc, argv, {"heddle", kAbout, kFooter, HEDDLE_VERSION}, add_commands)) return kDone;
  flush_output();
  return interrupted() ? kInterrupted : kDone;
}

ExitCode code_of(const std::exception& failure) {
  if (interrupted()) return kInterrupted;
  const auto* error = dynamic_cast<const Error*>(&failure);
  return error && error->code() == ErrorCode::kInvalidArgument ? kWrongArguments : kFailed;
}

int failed(ExitCode code, const char* message) {
  std::fflush(stdout);
  std::fprintf(stderr, "heddle: %s\n", message);
  return code;
}

int report(const std::exception& error) {
  try {
    return failed(code_of(error), message_of(error).c_str());
  } catch (const std::bad_alloc&) {
    return failed(kFailed,
                  "[memory] none is left, not even for the message; free some or allow more (ulimit -v)");
  }
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  using namespace heddle;
  hold_standard_descriptors();
  watch_interrupts();
  std::signal(SIGXFSZ, SIG_IGN);  // a write past a file size limit becomes an error of the write
  int code = kFailed;
  with_large_stack([&] {
    try {
      code = run(argc, argv);
    } catch (const std::exception& error) {
      code = report(error);
    }
  });
  return code;
}
