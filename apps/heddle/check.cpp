// heddle check: proves a saved program, or the programs that a model runs.
#include "heddle/ir/check.h"

#include <cstdio>
#include <filesystem>

#include <CLI/CLI.hpp>

#include "apps/heddle/support/engine_flags.h"
#include "heddle/base/error.h"

namespace heddle {
namespace {

// Prints one line for a program and its faults; true when it is proved.
bool show(const Program& program) {
  const CheckReport report = check(program);
  std::printf("%s: %zu instructions on %zu workers, %zu waits: %s in %.1f ms\n", program.name.c_str(),
              report.instructions, program.workers.size(), report.waits, report.ok() ? "proved" : "REJECTED",
              report.milliseconds);
  for (const Fault& fault : report.faults) std::printf("  %s: %s\n", name(fault.kind), fault.message.c_str());
  return report.ok();
}

void run(const EngineFlags& flags) {
  bool ok = true;
  if (std::filesystem::is_regular_file(flags.model)) {
    ok = show(load_program(flags.model));
  } else {
    const Planner planner = load_planner(flags);
    for (i32 rows : row_classes()) ok &= show(planner.program(rows, 1));
  }
  if (!ok) fail(ErrorCode::kInternal, "[check] {} was not proved", flags.model);
}

}  // namespace

void add_check(CLI::App& app) {
  auto flags = std::make_shared<EngineFlags>();
  CLI::App* command = app.add_subcommand(
      "check", "Prove that a program (a .heddle file, or those of a model) cannot deadlock or race");
  flags->add_program_to(*command, "model folder, or a .heddle file; the options below are for a folder");
  command->footer(
      "For a folder the programs of all row classes are built and proved; no weights are read.\n"
      "Example: heddle check models/storyteller --workers 132");
  command->callback([flags] { run(*flags); });
}

}  // namespace heddle
