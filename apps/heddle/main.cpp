// The command line. Exit codes: 0 done, 1 failed, 2 wrong arguments, 130 interrupted.
#include <csignal>
#include <cstdio>
#include <new>

#include <CLI/CLI.hpp>

#include "apps/heddle/support/interrupt.h"
#include "heddle/base/error.h"

namespace heddle {
void add_commands(CLI::App& app);
}

int main(int argc, char** argv) {
  CLI::App app(
      "heddle turns a transformer into one checked program of tile instructions and runs it.\n"
      "Try: heddle generate models/storyteller --prompt \"Once upon a time\"");
  app.require_subcommand(1);
  app.set_version_flag("--version", HEDDLE_VERSION);
  app.failure_message(CLI::FailureMessage::help);
  heddle::add_commands(app);
  heddle::watch_interrupts();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::fprintf(stderr, "heddle: %s\nRun with --help to see what there is.\n", error.what());
    return 2;
  } catch (const heddle::Error& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "heddle: %s\n", error.what());
    return error.code() == heddle::ErrorCode::kInvalidArgument ? 2 : 1;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "heddle: out of memory; a smaller --max-context or model needs less\n");
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "heddle: %s\n", error.what());
    return 1;
  }
  return heddle::interrupted() ? 130 : 0;
}
