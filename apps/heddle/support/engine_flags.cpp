#include "apps/heddle/support/engine_flags.h"

#include <cstdio>
#include <type_traits>

#include <fmt/format.h>

#include "apps/heddle/support/interrupt.h"
#include "apps/heddle/support/progress.h"
#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/engine/artefact.h"
#include "heddle/engine/device_name.h"
#include "heddle/engine/memory_need.h"
#include "heddle/engine/program_tuner.h"
#include "heddle/model/build/family.h"
#include "heddle/model/hf/other_formats.h"

namespace heddle {
namespace {

constexpr const char* kGroup = "The program and its executor";

void take_tuned_of(const EngineFlags& flags, const Model& model, EngineOptions& options) {
  if (const std::string tuned = take_tuned(model, options); !tuned.empty() && flags.verbose)
    std::fprintf(stderr, "[tuned: %s]\n", tuned.c_str());
}

}  // namespace

void EngineFlags::add_to(Command& command) {
  add_program_to(command, "folder with config.json, *.safetensors and tokenizer.json");
  add_executor_to(command);
  add_threads_to(command);
  command.argument("--verbose", &verbose,
                   "before loading, print the executor and the memory it needs to stderr", {.group = kGroup});
}

void EngineFlags::add_options(Command& command,
                              const std::function<bool(const std::string& name, const Option&)>& wanted,
                              const char* more, const std::string& also) {
  EngineOptions::visit(asked, [&](const char* name, auto& field, const Option& option) {
    using Value = std::remove_reference_t<decltype(field)>;
    if constexpr (std::is_constructible_v<FlagValue, Value*>) {
      if (!option.flag || !wanted(name, option)) return;
      command.argument(flag_of(name), &field, option.help() + more,
                       {.shows_default = option.zero.empty() || std::is_arithmetic_v<Value>,
                        .group = option.common ? "" : kGroup,
                        .choices = option.choices ? option.choices() + also : ""});
    }
  });
}

void EngineFlags::add_executor_to(Command& command) {
  asked.executor = kAutoExecutor;
  add_options(
      command, [](const std::string& name, const Option&) { return name == "executor"; }, ", auto",
      std::string(", ") + kAutoExecutor);
  add_device_to(command);
  command.argument("--generic", &generic, "GPU kernels that read sizes instead of being made for them",
                   {.group = kGroup});
}

void EngineFlags::add_device_to(Command& command) {
  command.argument("--device", &device,
                   "cpu, cuda, or cuda:1 as heddle env numbers them; default: a GPU, if there is one",
                   {.shows_default = false});
}

void EngineFlags::add_threads_to(Command& command) {
  add_options(command, [](const std::string& name, const Option&) { return name == "threads"; });
}

void EngineFlags::add_artefact_to(Command& command) {
  command.argument(
      "--program", &program,
      "programs that heddle compile made for this model and this device; nothing is compiled then",
      {.group = kGroup, .names = Names::kFile});
  command.argument("--prove", &prove,
                   "with --program: prove its programs again, in addition to comparing their proofs",
                   {.group = kGroup});
}

void EngineFlags::add_program_to(Command& command, const std::string& what, const ArgumentTraits& traits) {
  command.argument("model", &model, what, traits);
  command.argument("--adapter", &adapter,
                   "folder of a LoRA adapter of PEFT; it is merged into the weights as they are read",
                   {.group = "The model", .names = Names::kFolder});
  add_options(command, [](const std::string&, const Option& option) { return option.kept != Kept::kNot; });
  command.argument("--no-fuse", &no_fuse, "run every op as a call of its own", {.group = kGroup});
}

std::shared_ptr<const Artefact> EngineFlags::artefact() const {
  auto artefact = std::make_shared<const Artefact>(load_artefact(program));
  const PassOptions passes = options_of(*artefact).passes;
  require(!no_fuse || !passes.fuse_epilogues || !passes.fuse_prologues,
          "[{}] has fused calls; --no-fuse wants none", program);
  if (prove) prove_again(*artefact);
  return artefact;
}

void EngineFlags::choose_device(EngineOptions& options) const {
  const bool is_given = !device.empty() && device != kAutoExecutor;  // as heddle.load has it
  const auto named = is_given ? std::optional(parse_device(device, "--device")) : std::nullopt;
  if (options.executor != kAutoExecutor) {
    if (named) options.device = ordinal_for(options.executor, *named, "--device");
    return;
  }
  const DeviceKind* made_for = options.artefact ? &options.artefact->device : nullptr;
  DefaultExecutor chosen = named ? executor_on(*named) : default_executor();
  if (made_for && (!named || named->kind == DeviceName::Kind::kNumber))
    chosen = {made_for->executor, named ? *named->ordinal : default_device(*made_for)};
  options.executor = chosen.name, options.device = chosen.device;
}

EngineOptions EngineFlags::options() const {
  require(!prove || !program.empty(), "[--prove] is for the programs of --program, which is not given");
  EngineOptions options = asked;
  if (!program.empty()) options.artefact = artefact();
  choose_device(options);
  if (generic) options.run.knowledge = Knowledge::kForms;
  if (no_fuse) options.passes.fuse_epilogues = options.passes.fuse_prologues = false;
  options.max_sequences = 1;
  return options;
}

void warn_of_threads(i32 threads) {
  const int cores = allowed_cores();
  if (threads > 2 * cores)
    std::fprintf(stderr,
                 "note: %d threads on %s: they wait for each other; --threads 0 takes one for each core\n",
                 threads, describe_cores().c_str());
}

std::unique_ptr<Model> load_model(const EngineFlags& flags) {
  auto model = open_model(flags.model, flags.adapter);
  for (const std::string& note : model->info().notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  return model;
}

std::unique_ptr<Engine> load_engine(const EngineFlags& flags, EngineOptions options) {
  require_model_folder(flags.model);
  options.progress = [](size_t done, size_t all) {
    if (interrupted()) fail(ErrorCode::kDevice, "[load] interrupted after {} of {} bytes", done, all);
  };
  options.run.cancelled = interrupted;
  const bool by_default =
      flags.asked.executor == kAutoExecutor && flags.program.empty() && flags.device.empty();
  if (flags.verbose || (by_default && default_executor().has_device))
    std::fprintf(stderr, "[executor: %s]\n",
                 describe_choice(options.executor, options.device, by_default).c_str());
  if (ProgressLine().on_terminal() || flags.verbose)
    options.on_need = [](const MemoryNeed& need) {
      std::fprintf(stderr, "[memory: %s]\n", need.text().c_str());
    };
  warn_of_threads(options.threads);
  std::unique_ptr<Model> model = load_model(flags);
  take_tuned_of(flags, *model, options);
  auto engine = std::make_unique<Engine>(std::move(model), std::move(options));
  for (const std::string& note :
       {context_note(engine->info(), engine->max_context()), engine->weights_note()})
    if (!note.empty()) std::fprintf(stderr, "note: %s\n", note.c_str());
  return engine;
}

i32 context_of(const EngineFlags& flags, EngineOptions options) {
  require_model_folder(flags.model);
  const auto model = open_model(flags.model, flags.adapter);
  take_settings(*model, options);
  complete(model->info(), options);
  return options.max_context;
}

Planner load_planner(const EngineFlags& flags, EngineOptions& options) {
  require_model_folder(flags.model);
  const std::shared_ptr<const Model> model = load_model(flags);
  take_settings(*model, options);
  take_tuned_of(flags, *model, options);
  return make_planner(model, options);
}

}  // namespace heddle
