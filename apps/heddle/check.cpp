// heddle check: proves a saved program, or the programs that a model runs; or compiles the tile bodies for
// GPUs. The cases of ops are run by the Python package (support/python_part.h).
#include "heddle/ir/check.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/engine_flags.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/ir/artefact.h"
#include "heddle/ir/executor.h"

namespace heddle {
namespace {

// Prints one line for a program and its faults; returns the first fault, "" when it is proved.
std::string show(const Program& program) {
  const CheckReport report = check(program);
  print("{}: {} instructions on {} workers, {} waits: {} in {:.1f} ms\n", program.name, report.instructions,
        program.workers.size(), report.waits, report.ok() ? "proved" : "REJECTED", report.milliseconds);
  std::string first;
  for (const Fault& fault : report.faults) {
    const std::string text = fmt::format("{}: {}", name(fault.kind), fault.message);
    print("  {}\n", text);
    if (first.empty()) first = text;
  }
  return first;
}

// Loading compares the artefact's proofs; this makes them again.
std::string show(const Artefact& artefact) {
  std::string first;
  for (const ProvedProgram& program : artefact.programs)
    if (std::string fault = show(artefact.program(program.rows, program.sequences)); first.empty())
      first = std::move(fault);
  return first;
}

struct CheckFlags {
  EngineFlags engine;
  std::vector<std::string> archs;
  BodyCheckOptions bodies;
  std::string code;
  bool json = false;
};

// Names the files of a kernel's code in the folder of all: "17".
std::string code_file(size_t number) {
  return fmt::format("{}", number);
}

void write_code(const std::vector<BodyCheck>& checks, const std::string& folder) {
  std::filesystem::create_directories(folder);
  for (size_t i = 0; i < checks.size(); ++i) {
    write_file(fmt::format("{}/{}.cubin", folder, code_file(i)), checks[i].code);
    write_file(fmt::format("{}/{}.log", folder, code_file(i)), checks[i].log);
  }
}

void print_table(const std::vector<BodyCheck>& checks) {
  print(fmt::format("{:18} {:8} {:>4} {:>9} {:>7} {:>6} {:>8} {:>8}\n", "body", "arch", "rows", "registers",
                    "shared", "stack", "spilled", "seconds"));
  for (const BodyCheck& check : checks) {
    const KernelUse& use = check.use;
    print(fmt::format("{:18} {:8} {:4} {:9} {:7} {:6} {:8} {:8.2f}{}{}{}{}\n", check.op, check.arch,
                      check.rows, use.registers, use.shared_bytes, use.stack_bytes,
                      use.spill_store_bytes + use.spill_load_bytes, check.seconds,
                      check.config.values().empty() ? "" : "  " + check.config.text(),
                      check.types.empty() ? "" : "  " + check.types, check.optimised ? "" : "  unoptimised",
                      check.failure.empty() ? "" : "  FAIL"));
  }
}

void print_json(const std::vector<BodyCheck>& checks) {
  Json rows = Json::array();
  for (const BodyCheck& check : checks)
    rows.push_back(Json::object({{"op", check.op},
                                 {"arch", check.arch},
                                 {"rows", check.rows},
                                 {"code", code_file(rows.size())},
                                 {"config", check.config.text()},
                                 {"types", check.types},
                                 {"optimised", check.optimised},
                                 {"registers", check.use.registers},
                                 {"shared_bytes", check.use.shared_bytes},
                                 {"stack_bytes", check.use.stack_bytes},
                                 {"spill_store_bytes", check.use.spill_store_bytes},
                                 {"spill_load_bytes", check.use.spill_load_bytes},
                                 {"failure", check.failure}}));
  print(rows.dump(2) + "\n");
}

// Each backend compiles for the architectures that it knows.
std::vector<BodyCheck> check_bodies(const CheckFlags& flags) {
  std::map<const Backend*, std::vector<std::string>> archs;
  for (const std::string& arch : flags.archs) archs[&backend_for_arch(arch)].push_back(arch);
  std::vector<BodyCheck> all;
  for (const auto& [backend, own] : archs)
    std::ranges::move(backend->compiler->check_bodies(own, flags.bodies), std::back_inserter(all));
  return all;
}

void check_devices(const CheckFlags& flags) {
  require(flags.engine.model.empty(), "[check] --arch compiles the tile bodies and takes no model: {}",
          flags.engine.model);
  const std::vector<BodyCheck> checks = check_bodies(flags);
  if (!flags.code.empty()) write_code(checks, flags.code);
  flags.json ? print_json(checks) : print_table(checks);
  size_t failed = 0;
  std::string first;
  for (const BodyCheck& check : checks) {
    if (check.failure.empty()) continue;
    if (failed++ == 0)
      first = fmt::format("{} in configuration {} for {}{}: {}", check.op, check.config.text(), check.arch,
                          check.types.empty() ? "" : " with " + check.types, check.failure);
  }
  if (failed > 0)
    fail(ErrorCode::kCompile, "[check] {} of {} do not hold; first {}", failed, checks.size(), first);
}

void run(const EngineFlags& flags) {
  require(!flags.model.empty(), "[check] MODEL or --arch is missing; see heddle check --help");
  std::string fault;
  if (is_file(flags.model)) {
    fault = is_artefact(flags.model) ? show(load_artefact(flags.model)) : show(load_program(flags.model));
  } else {
    EngineOptions options = flags.options();
    const Planner planner = load_planner(flags, options);
    for (i32 rows : planner.row_classes())
      if (const std::string found = show(planner.program(rows, 1)); fault.empty()) fault = found;
  }
  if (!fault.empty()) fail(ErrorCode::kInternal, "[check] {} is rejected: {}", flags.model, fault);
}

}  // namespace

void add_check(CLI::App& app) {
  auto flags = std::make_shared<CheckFlags>();
  Command command(app, "check",
                  "Prove that programs cannot deadlock or race; or compile tile bodies for GPUs; or run the "
                  "cases of ops");
  flags->engine.add_program_to(command, "model folder, or a .heddle file; the options below are for a folder",
                               {.names = Names::kPath});
  command.argument("--arch", &flags->archs,
                   fmt::format("compile every tile body for these instead, no GPU needed: {}",
                               fmt::join(known_archs(), ",")),
                   {.separator = ',', .choices = fmt::format("{}", fmt::join(known_archs(), ", "))});
  command.argument("--ops", &flags->bodies.ops, "with --arch: only the bodies of these ops",
                   {.separator = ','});
  command.argument("--all-configs", &flags->bodies.all_configs,
                   "with --arch: the bodies in each configuration of their ops too");
  command.argument(
      "--unoptimised", &flags->bodies.unoptimised,
      "with --arch: only find out whether they compile, whatever their arguments, in a part of the time; "
      "no budgets");
  command.argument("--code", &flags->code,
                   "with --arch: write each kernel's machine code and log to this folder, as 0.cubin, 0.log, "
                   "1.cubin ...");
  command.argument("--json", &flags->json, "with --arch: print JSON");
  command.footer(
      "For a folder, builds and proves the programs of all row classes. Reads no weights.\n"
      "With --arch, shows registers, shared memory, stack and spills of each kernel, and compares them with\n"
      "budgets. Products know the types of their arguments, as in calls.\n"
      "With names of ops, or `all`, runs their cases: python3 -m heddle.check --help.\n"
      "Examples: heddle check models/storyteller --workers 132\n"
      "          heddle check softmax rms_norm --device cuda\n"
      "          heddle check --arch sm_80,sm_90a --ops linear,attention");
  command.action([flags] {
    require(flags->bodies.ops.empty() || !flags->archs.empty(),
            "[check] --ops {} is for bodies; give --arch too", fmt::join(flags->bodies.ops, ","));
    flags->bodies.keeps_code = !flags->code.empty();
    flags->archs.empty() ? run(flags->engine) : check_devices(*flags);
  });
}

}  // namespace heddle
