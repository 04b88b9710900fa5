// heddle check: proves a saved program, or the programs that a model runs.
#include "heddle/ir/check.h"

#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "apps/heddle/support/engine_flags.h"
#include "heddle/base/error.h"

namespace heddle {
namespace {

// Prints one line for a program and its faults; returns the first fault, "" when it is proved.
std::string show(const Program& program) {
  const CheckReport report = check(program);
  fmt::print("{}: {} instructions on {} workers, {} waits: {} in {:.1f} ms\n", program.name,
             report.instructions, program.workers.size(), report.waits, report.ok() ? "proved" : "REJECTED",
             report.milliseconds);
  std::string first;
  for (const Fault& fault : report.faults) {
    const std::string text = fmt::format("{}: {}", name(fault.kind), fault.message);
    fmt::print("  {}\n", text);
    if (first.empty()) first = text;
  }
  return first;
}

void run(const EngineFlags& flags) {
  std::string fault;
  if (std::filesystem::is_regular_file(flags.model)) {
    fault = show(load_program(flags.model));
  } else {
    const Planner planner = load_planner(flags);
    for (i32 rows : row_classes())
      if (const std::string found = show(planner.program(rows, 1)); fault.empty()) fault = found;
  }
  if (!fault.empty()) fail(ErrorCode::kInternal, "[check] {} is rejected: {}", flags.model, fault);
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
