#include "apps/heddle/support/engine_flags.h"

#include <cstdio>
#include <type_traits>

#include <fmt/format.h>

#include "apps/heddle/support/interrupt.h"
#include "apps/heddle/support/progress.h"
#include "heddle/base/error.h"
#include "heddle/engine/artefact.h"
#include "heddle/engine/default_executor.h"
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
      command, [](const std::string& name, const Option&) { return name == "executor"; },
      "; auto: megakernel where there is a GPU, else threads", std::string(", ") + kAutoExecutor);
  add_device_to(command);
  command.argument("--generic", &generic, "GPU kernels that read sizes instead of being made for them",
                   {.group = kGroup});
}

void EngineFlags::add_device_to(Command& command) {
  add_options(
      command, [](const std::string& name, const Option&) { return name == "device"; },
      "; auto takes the GPU with the most free memory unless this names one");
  device_given = [command] { return command.given("--device"); };
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

EngineOptions EngineFlags::options() const {
  require(!prove || !program.empty(), "[--prove] is for the programs of --program, which is not given");
  EngineOptions options = asked;
  if (!program.empty()) options.artefact = artefact();
  if (options.executor == kAutoExecutor) {
    const DeviceKind* made_for = options.artefact ? &options.artefact->device : nullptr;
    const DefaultExecutor chosen =
        made_for ? DefaultExecutor{made_for->executor, default_device(*made_for)} : default_executor();
    options.executor = chosen.name;
    if (!device_given()) options.device = chosen.device;
  }
  if (generic) options.run.knowledge = Knowledge::kForms;
  if (no_fuse) options.passes.fuse_epilogues = options.passes.fuse_prologues = false;
  options.max_sequences = 1;
  return options;
}

std::unique_ptr<Model> load_model(const std::string& folder) {
  auto model = open_model(folder);
  for (const std::string& note : model->info().notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  return model;
}

std::unique_ptr<Engine> load_engine(const EngineFlags& flags, EngineOptions options) {
  require_model_folder(flags.model);
  const auto line = std::make_shared<ProgressLine>(1.0);
  options.progress = [line](size_t done, size_t all) {
    if (interrupted()) fail(ErrorCode::kDevice, "[load] interrupted after {} of {} bytes", done, all);
    line->show(
        fmt::format("loading {:3.0f} % of {:.1f} MB", 100.0 * double(done) / double(all), double(all) / 1e6));
    if (done >= all) line->clear();
  };
  options.run.cancelled = interrupted;
  const bool by_default = flags.asked.executor == kAutoExecutor && flags.program.empty();
  if (flags.verbose || (by_default && default_executor().has_device))
    std::fprintf(stderr, "[executor: %s]\n",
                 describe_choice(options.executor, options.device, by_default).c_str());
  if (line->on_terminal() || flags.verbose)
    options.on_need = [](const MemoryNeed& need) {
      std::fprintf(stderr, "[memory: %s]\n", need.text().c_str());
    };
  std::unique_ptr<Model> model = load_model(flags.model);
  take_tuned_of(flags, *model, options);
  auto engine = std::make_unique<Engine>(std::move(model), std::move(options));
  if (const std::string note = context_note(engine->info(), engine->max_context()); !note.empty())
    std::fprintf(stderr, "note: %s\n", note.c_str());
  return engine;
}

i32 context_of(const EngineFlags& flags, EngineOptions options) {
  require_model_folder(flags.model);
  const auto model = open_model(flags.model);
  take_settings(*model, options);
  complete(model->info(), options);
  return options.max_context;
}

Planner load_planner(const EngineFlags& flags, EngineOptions& options) {
  require_model_folder(flags.model);
  const std::shared_ptr<const Model> model = load_model(flags.model);
  take_settings(*model, options);
  take_tuned_of(flags, *model, options);
  return make_planner(model, options);
}

}  // namespace heddle
