// heddle check: proves a saved program, or the programs that a model runs; or compiles the tile bodies for
// GPUs. The cases of ops are run by the Python package (support/python_part.h).
#include "heddle/ir/check/check.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "apps/heddle/support/columns.h"
#include "apps/heddle/support/command.h"
#include "apps/heddle/support/engine_flags.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/near_names.h"
#include "heddle/ir/executor/artefact.h"
#include "heddle/ir/executor/executor.h"
#include "heddle/ir/registry.h"

namespace heddle {
namespace {

// The check's verdicts on programs. JSON is printed when all are there.
class Verdicts {
 public:
  explicit Verdicts(bool json) : json_(json) {}

  void add(const Program& program) {
    const CheckReport report = check(program);
    Json faults = Json::array();
    if (!json_)
      print("{}: {} instructions on {} workers, {} waits: {} in {:.1f} ms\n", program.name,
            report.instructions, program.workers.size(), report.waits, report.ok() ? "proved" : "REJECTED",
            report.milliseconds);
    for (const Fault& fault : report.faults) {
      const std::string text = fmt::format("{}: {}", name(fault.kind), fault.message);
      if (!json_) print("  {}\n", text);
      faults.push_back(text);
      if (first_.empty()) first_ = text;
    }
    rows_.push_back(Json::object({{"program", program.name},
                                  {"instructions", report.instructions},
                                  {"workers", program.workers.size()},
                                  {"waits", report.waits},
                                  {"proved", report.ok()},
                                  {"milliseconds", report.milliseconds},
                                  {"faults", faults}}));
  }
  // The first fault; "" where all are proved.
  const std::string& end() const {
    if (json_) print_json(rows_);
    return first_;
  }

 private:
  bool json_;
  Json rows_ = Json::array();
  std::string first_;
};

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
    print("{:18} {:8} {:4} {:9} {:7} {:6} {:8} {:8.2f}{}\n", check.op, check.arch, check.rows, use.registers,
          use.shared_bytes, use.stack_bytes, use.spill_store_bytes + use.spill_load_bytes, check.seconds,
          check.failure.empty() ? "" : " FAIL");
    std::string more = check.config.values().empty() ? "" : check.config.text();
    if (!check.types.empty()) more += (more.empty() ? "" : "; ") + check.types;
    if (!check.optimised) more += more.empty() ? "unoptimised" : "; unoptimised";
    if (!more.empty()) print(wrapped("    " + more, output_columns(), 6) + "\n");
  }
}

void show_json(const std::vector<BodyCheck>& checks) {
  Json rows = Json::array();
  for (const BodyCheck& check : checks)
    rows.push_back(Json::object({{"op", check.op},
                                 {"arch", check.arch},
                                 {"rows", check.rows},
                                 {"code", code_file(rows.size())},
                                 {"made_for", check.made_for},
                                 {"code_name", check.code_name},
                                 {"config", check.config.text()},
                                 {"types", check.types},
                                 {"optimised", check.optimised},
                                 {"registers", check.use.registers},
                                 {"shared_bytes", check.use.shared_bytes},
                                 {"stack_bytes", check.use.stack_bytes},
                                 {"spill_store_bytes", check.use.spill_store_bytes},
                                 {"spill_load_bytes", check.use.spill_load_bytes},
                                 {"failure", check.failure}}));
  print_json(rows);
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
  flags.json ? show_json(checks) : print_table(checks);
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

// Names that may be checked, besides folders and files.
std::vector<std::string> op_names() {
  std::vector<std::string> names = {"all"};
  for (const OpSpec* op : all_ops()) names.push_back(op->name);
  return names;
}

void run(const CheckFlags& all) {
  const EngineFlags& flags = all.engine;
  require(!flags.model.empty(), "[check] MODEL or --arch is missing; see heddle check --help");
  require(path_exists(flags.model), "[check] {} is no folder, file or op{}", flags.model,
          did_you_mean(flags.model, op_names()));
  Verdicts verdicts(all.json);
  if (is_file(flags.model) && !is_artefact(flags.model)) {
    verdicts.add(load_program(flags.model));
  } else if (is_file(flags.model)) {
    // Loading compares the artefact's proofs; this makes them again.
    const Artefact artefact = load_artefact(flags.model);
    for (const ProvedProgram& program : artefact.programs)
      verdicts.add(artefact.program(program.rows, program.sequences));
  } else {
    EngineOptions options = flags.options();
    const Planner planner = load_planner(flags, options);
    for (i32 rows : planner.row_classes()) verdicts.add(planner.program(rows, 1));
  }
  if (const std::string& fault = verdicts.end(); !fault.empty())
    fail(ErrorCode::kInternal, "[check] {} is rejected: {}", flags.model, fault);
}

}  // namespace

void add_check(CLI::App& app) {
  auto flags = std::make_shared<CheckFlags>();
  Command command(app, "check",
                  "Prove that programs cannot deadlock or race; or compile tile bodies for GPUs; or run the "
                  "cases of ops");
  flags->engine.add_program_to(
      command, "model folder, or a .heddle file; the options below are for a folder",
      {.names = Names::kPath, .also = fmt::format("{}", fmt::join(op_names(), ", "))});
  command.argument("--arch", &flags->archs,
                   fmt::format("compile every tile body for these instead, no GPU needed: {}",
                               fmt::join(known_archs(), ",")),
                   {.separator = ',', .choices = fmt::format("{}", fmt::join(known_archs(), ", "))});
  command.argument("--ops", &flags->bodies.ops, "with --arch: only the bodies of these ops",
                   {.separator = ',', .also = fmt::format("{}", fmt::join(op_names(), ", "))});
  command.argument("--all-configs", &flags->bodies.all_configs,
                   "with --arch: the bodies in each configuration of their ops too");
  command.argument(
      "--unoptimised", &flags->bodies.unoptimised,
      "with --arch: only find out whether they compile, whatever their arguments, in a part of the time; "
      "no budgets");
  command.argument("--code", &flags->code,
                   "with --arch: write each kernel's machine code and log to this folder, as 0.cubin, 0.log, "
                   "1.cubin ...");
  command.argument(
      "--names", &flags->bodies.only_names,
      "with --arch and --json: compile nothing, and print a digest of what each kernel's code is made of");
  command.argument("--json", &flags->json, "print JSON");
  command.footer(
      "For a folder, builds and proves the programs for steps of all sizes. Reads no weights.\n"
      "With --arch, shows registers, shared memory, stack and spills of each kernel, and compares them with\n"
      "budgets. Products know the types of their arguments, as in calls.\n"
      "With names of ops, my_file.py:MyOp, or `all`, runs their cases: python3 -m heddle.check --help.\n"
      "Examples: heddle check models/storyteller --workers 132\n"
      "          heddle check softmax rms_norm --device cuda\n"
      "          heddle check --arch sm_80,sm_90a --ops linear,attention");
  command.action([flags] {
    require(flags->bodies.ops.empty() || !flags->archs.empty(),
            "[check] --ops {} is for bodies; give --arch too", fmt::join(flags->bodies.ops, ","));
    require(!flags->bodies.only_names || (flags->json && !flags->archs.empty()),
            "[check] --names prints names of code; give --arch and --json too");
    flags->bodies.keeps_code = !flags->code.empty();
    flags->archs.empty() ? run(*flags) : check_devices(*flags);
  });
}

}  // namespace heddle
