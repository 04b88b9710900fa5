// The command line: finds the command, and turns an error into a message and an exit code.
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "apps/heddle/support/command_app.h"
#include "apps/heddle/support/input.h"
#include "apps/heddle/support/interrupt.h"
#include "apps/heddle/support/output.h"
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

// The command that the arguments name. CLI11 reports both a missing and an unknown command only as "one is
// required".
CLI::App* find_command(CLI::App& app, int argc, char** argv) {
  std::string known;
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    if (argc > 1 && command->get_name() == argv[1]) return command;
    if (command->get_group().empty()) continue;  // hidden
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  require(argc > 1, "no command; there are {}; see heddle --help", known);
  require(argv[1][0] == '-', "'{}' is not a command; there are {}; see heddle --help", argv[1], known);
  return nullptr;
}

int run(int argc, char** argv) {
  const std::string python = hand_to_python(argc, argv);
  require(python.empty(), "{}", python);
  register_builtins();
  CLI::App app(kAbout, "heddle");
  app.footer(kFooter);
  app.formatter(std::make_shared<HelpFormatter>());
  app.require_subcommand(1);
  app.set_version_flag("--version", HEDDLE_VERSION);
  add_commands(app);
  const CLI::App* command = find_command(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    fail(ErrorCode::kInvalidArgument, "{}; see heddle {}--help", error.what(),
         command ? command->get_name() + " " : "");
  }
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
