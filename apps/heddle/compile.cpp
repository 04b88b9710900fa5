// heddle compile: makes programs, proofs and device code ahead of time, for a device that need not be in this
// machine.
#include <algorithm>
#include <cstdio>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/engine_flags.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/error.h"
#include "heddle/engine/artefact.h"
#include "heddle/model/build/family.h"
#include "heddle/model/hf/other_formats.h"

namespace heddle {
namespace {

struct CompileFlags {
  EngineFlags engine;
  std::string device, arch, out;
  i32 sequences = 1;
  bool logits = false;
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
  for (const DeviceKind& kind : known_devices())
    if (kind.name == flags.device) return kind;
  fail(ErrorCode::kInvalidArgument, "[compile] --device {} is not known; there are {}; or give --arch",
       flags.device, names_of_devices());
}

void run(const CompileFlags& flags) {
  const DeviceKind device = device_of(flags);
  require_model_folder(flags.engine.model);
  EngineOptions options = flags.engine.options();
  options.max_sequences = flags.sequences;
  options.all_logits = flags.logits;
  const Artefact artefact = make_artefact(load_model(flags.engine.model), options, device);
  save_artefact(artefact, flags.out);
  print(print_artefact(artefact));
  std::fprintf(stderr, "wrote %s\n", flags.out.c_str());
}

}  // namespace

void add_compile(CLI::App& app) {
  auto flags = std::make_shared<CompileFlags>();
  Command command(app, "compile", "Make a model's programs, their proofs and device code ahead of time");
  flags->engine.add_program_to(command, "folder with config.json and *.safetensors");
  command.argument("--device", &flags->device,
                   "device to compile for; it need not be in this machine: " + names_of_devices(),
                   {.choices = names_of_devices()});
  command.argument("--arch", &flags->arch,
                   "any GPU of this architecture, such as sm_90a, with room for --workers");
  command.argument("--sequences", &flags->sequences, "most sequences at once");
  command.argument("--logits", &flags->logits,
                   "programs for heddle logits, which computes logits of every row");
  command.argument("--out", &flags->out, "the .heddle file", {.required = true, .names = Names::kNewFile});
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
