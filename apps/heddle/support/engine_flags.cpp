#include "apps/heddle/support/engine_flags.h"

#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "apps/heddle/support/progress.h"
#include "heddle/base/error.h"
#include "heddle/engine/artefact.h"
#include "heddle/engine/default_executor.h"
#include "heddle/model/build/family.h"
#include "heddle/schedule/schedule.h"

namespace heddle {
namespace {

constexpr const char* kGroup = "The program and its executor";

std::string names_of_executors() {
  std::string names;
  for (const Backend* backend : all_backends())
    for (const ExecutorSpec& executor : backend->executors)
      names += std::string(names.empty() ? "" : ", ") + executor.name;
  return names;
}

std::string names_of_schedulers() {
  std::string names;
  for (const Scheduler* scheduler : all_schedulers())
    names += std::string(names.empty() ? "" : ", ") + scheduler->name;
  return names;
}

}  // namespace

void EngineFlags::add_to(Command& command) {
  add_program_to(command, "folder with config.json, *.safetensors and tokenizer.json");
  add_executor_to(command);
  add_threads_to(command);
  command.argument("--verbose", &verbose,
                   "before loading, print the executor and the memory it needs to stderr", {.group = kGroup});
}

void EngineFlags::add_executor_to(Command& command) {
  executor = kAutoExecutor;
  command.argument(
      "--executor", &executor,
      "executor: " + names_of_executors() + "; auto: megakernel where there is a GPU, else threads",
      {.group = kGroup});
  command.argument("--generic", &generic, "GPU kernels that read sizes instead of being made for them",
                   {.group = kGroup});
}

void EngineFlags::add_threads_to(Command& command) {
  command.argument("--threads", &threads, "threads; 0: all cores this process may use", {.group = kGroup});
}

void EngineFlags::add_artefact_to(Command& command) {
  command.argument(
      "--program", &program,
      "programs that heddle compile made for this model and this device; nothing is compiled then",
      {.group = kGroup});
  command.argument("--prove", &prove,
                   "with --program: prove its programs again, in addition to comparing their proofs",
                   {.group = kGroup});
}

void EngineFlags::add_program_to(Command& command, const std::string& what, bool model_required) {
  command.argument("model", &model, what, {.required = model_required});
  command.argument(
      "--scheduler", &scheduler,
      fmt::format("how tiles are ordered: {}; default: {}", names_of_schedulers(), EngineOptions().scheduler),
      {.shows_default = false, .group = kGroup});
  command.argument("--workers", &workers,
                   "workers of the program; 0: one for each thread, or each SM of a GPU", {.group = kGroup});
  command.argument("--max-context", &max_context, "positions of a sequence; 0: the model's, at most 8192",
                   {.group = kGroup});
  command.argument("--split-unit", &split_unit,
                   "attention: positions of which a part is a multiple; 0: as the device has it",
                   {.group = kGroup});
  command.argument("--max-splits", &max_splits, "attention: parts at most; 0: as the device has it",
                   {.group = kGroup});
  command.argument("--no-fuse", &no_fuse, "run every op as a call of its own", {.group = kGroup});
}

std::shared_ptr<const Artefact> EngineFlags::artefact() const {
  auto artefact = std::make_shared<const Artefact>(load_artefact(program));
  const ProgramSettings& has = artefact->settings;
  require(scheduler.empty() || scheduler == has.scheduler, "[{}] was scheduled by {}; wanted is {}", program,
          has.scheduler, scheduler);
  require(!no_fuse || !has.fused, "[{}] has fused calls; --no-fuse wants none", program);
  if (prove) prove_again(*artefact);
  return artefact;
}

EngineOptions EngineFlags::options() const {
  require(!prove || !program.empty(), "[--prove] is for the programs of --program, which is not given");
  EngineOptions options;
  if (!program.empty()) options.artefact = artefact();
  options.executor = executor != kAutoExecutor ? executor
                     : options.artefact        ? options.artefact->device.executor
                                               : default_executor().name;
  if (!scheduler.empty()) options.scheduler = scheduler;
  options.workers = workers;
  options.threads = threads;
  options.max_context = max_context;
  options.split_unit = split_unit;
  options.max_splits = max_splits;
  if (generic) options.run.knowledge = Knowledge::kForms;
  if (no_fuse) options.passes = {.fuse_epilogues = false, .fuse_prologues = false};
  options.max_sequences = 1;
  return options;
}

void require_model_folder(const std::string& path) {
  if (std::filesystem::is_directory(path)) return;
  fail(ErrorCode::kIo, "[{}] {}; a model is the folder that save_pretrained writes", path,
       std::filesystem::exists(path) ? "is not a folder" : "there is no such folder");
}

std::unique_ptr<Engine> load_engine(const EngineFlags& flags, EngineOptions options) {
  require_model_folder(flags.model);
  const auto line = std::make_shared<ProgressLine>();
  options.progress = [line](size_t done, size_t all) {
    line->show(
        fmt::format("loading {:3.0f} % of {:.1f} MB", 100.0 * double(done) / double(all), double(all) / 1e6));
    if (done >= all) line->clear();
  };
  const bool by_default = flags.executor == kAutoExecutor && flags.program.empty();
  if (flags.verbose || (by_default && default_executor().has_device))
    std::fprintf(stderr, "[executor: %s]\n", describe_choice(options.executor, by_default).c_str());
  if (line->on_terminal() || flags.verbose)
    options.on_need = [](const MemoryNeed& need) {
      std::fprintf(stderr, "[memory: %s]\n", need.text().c_str());
    };
  return std::make_unique<Engine>(open_model(flags.model), std::move(options));
}

Planner load_planner(const EngineFlags& flags) {
  require_model_folder(flags.model);
  EngineOptions options = flags.options();
  return make_planner(open_model(flags.model), options);
}

}  // namespace heddle
