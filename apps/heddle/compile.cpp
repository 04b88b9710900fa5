// heddle compile: makes programs, proofs and device code ahead of time, for a device that need not be in this
// machine.
#include <algorithm>

#include <fmt/ranges.h>

#include "apps/heddle/support/columns.h"
#include "apps/heddle/support/command.h"
#include "apps/heddle/support/engine_flags.h"
#include "apps/heddle/support/interrupt.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/error.h"
#include "heddle/base/json.h"
#include "heddle/base/near_names.h"
#include "heddle/engine/artefact.h"
#include "heddle/engine/device_name.h"
#include "heddle/model/build/family.h"
#include "heddle/model/hf/other_formats.h"

namespace heddle {
namespace {

constexpr const char* kThisGpu = "cuda";

struct CompileFlags {
  EngineFlags engine;
  std::string device, arch, out;
  i32 sequences = 1;
  bool logits = false, json = false;
};

std::vector<DeviceKind> known_devices() {
  std::vector<DeviceKind> all;
  for (const Backend* backend : all_backends())
    all.insert(all.end(), backend->kinds.begin(), backend->kinds.end());
  return all;
}

std::string names_of_devices() {
  std::string names;
  for (const DeviceKind& kind : known_devices()) names += (names.empty() ? "" : ", ") + kind.name;
  return names;
}

DeviceKind device_of(const CompileFlags& flags) {
  require(flags.device.empty() != flags.arch.empty(),
          "[compile] --device is '{}' and --arch '{}'; give one of both", flags.device, flags.arch);
  if (!flags.arch.empty()) {
    const Backend& backend = backend_for_arch(flags.arch);
    require(flags.engine.asked.workers > 0, "[compile] --arch {} says nothing of --workers; give them",
            flags.arch);
    return {.name = "", .executor = backend.kinds.front().executor, .arch = flags.arch, .units = 0};
  }
  std::vector<std::string> names = {kThisGpu};
  for (const DeviceKind& kind : known_devices()) {
    if (kind.name == flags.device) return kind;
    names.push_back(kind.name);
  }
  if (flags.device.starts_with(kThisGpu)) {  // this machine's
    const DefaultExecutor here = executor_on(parse_device(flags.device, "compile"));
    const std::string why = get_executor(here.name).no_device();
    require(why.empty(), "[compile] --device {}: {}; give the kind of a card: {}", flags.device, why,
            names_of_devices());
    return backend_of(here.name).kind(here.device);
  }
  require(std::ranges::count(known_archs(), flags.device) == 0, "[compile] {} is an architecture: --arch {}",
          flags.device, flags.device);
  fail(ErrorCode::kInvalidArgument, "[compile] --device {} is not known; there are {}; or give --arch{}",
       flags.device, fmt::join(names, ", "),
       flags.device.starts_with("gpu") ? "; did you mean cuda?" : did_you_mean(flags.device, names));
}

void run(const CompileFlags& flags) {
  const DeviceKind device = device_of(flags);
  require_model_folder(flags.engine.model);
  EngineOptions options = flags.engine.options();
  options.max_sequences = flags.sequences;
  options.all_logits = flags.logits;
  note_what_stays("kernels that were compiled are kept in heddle's cache, and compiled no more");
  const Artefact artefact = make_artefact(load_model(flags.engine), options, device);
  save_artefact(artefact, flags.out);
  if (flags.json)
    print_json(json_of(artefact));
  else
    print(wrapped(print_artefact(artefact), output_columns(), 12));
  say_written(flags.out);
}

}  // namespace

void add_compile(CLI::App& app) {
  auto flags = std::make_shared<CompileFlags>();
  Command command(app, "compile", "Make a model's programs, their proofs and device code ahead of time");
  flags->engine.add_program_to(command, "folder with config.json and *.safetensors");
  command.argument("--device", &flags->device,
                   "device to compile for: cuda, this machine's GPU; or a kind that need not be here: " +
                       names_of_devices(),
                   {.choices = kThisGpu + (", " + names_of_devices())});
  command.argument("--arch", &flags->arch,
                   "any GPU of this architecture, such as sm_90a, with room for --workers");
  command.argument("--sequences", &flags->sequences, "most sequences at once");
  command.argument("--logits", &flags->logits,
                   "programs for heddle logits, which computes logits of every row");
  command.argument("--out", &flags->out, "the .heddle file", {.required = true, .names = Names::kNewFile});
  command.argument("--json", &flags->json, "print what the file holds as JSON");
  command.footer(
      "NVRTC compiles device code; this needs no GPU. The same input gives the same bytes. Running the file\n"
      "needs no compiler. It fits only this heddle, this checkpoint (config.json, names, types, shapes and\n"
      "samples of the tensors) and this kind of device (architecture, multiprocessors).\n"
      "Examples:\n"
      "  heddle compile models/storyteller --device h200 --out story.heddle\n"
      "  heddle generate models/storyteller --program story.heddle --prompt \"Once upon a time\"\n"
      "  heddle check story.heddle\n"
      "  heddle compile models/storyteller --arch sm_90a --workers 114 --out story.heddle");
  command.action([flags] { run(*flags); });
}

}  // namespace heddle
