#include "heddle/engine/artefact.h"

#include "heddle/base/error.h"
#include "heddle/base/version.h"

namespace heddle {
namespace {

ProgramSettings settings_of(const EngineOptions& options, const Planner& planner, const Target& target) {
  const Capacity& capacity = planner.capacity();
  return {.scheduler = options.scheduler,
          .workers = target.topology.workers,
          .max_context = options.max_context,
          .max_sequences = options.max_sequences,
          .page_size = capacity.page_size,
          .split_unit = capacity.split_unit,
          .max_splits = capacity.max_splits,
          .kv_dtype = capacity.kv_dtype ? i32(*capacity.kv_dtype) : -1,
          .all_logits = capacity.all_logits,
          .fused = options.passes.fuse_epilogues && options.passes.fuse_prologues};
}

// Programs for a CPU have no target; those for a GPU also run on a CPU.
void require_device(const Artefact& artefact, const std::string& executor) {
  const DeviceKind& wanted = artefact.device;
  const Backend& backend = backend_of(executor);
  if (&backend != &backend_of(wanted.executor)) {
    if (get_executor(executor).space)
      fail(ErrorCode::kUnsupported, "[{}] is for {}; {} runs on {}", artefact.where, wanted.text(), executor,
           backend.name);
    return;
  }
  if (!backend.kind) return;
  if (const std::string why = get_executor(executor).no_device(); !why.empty())
    fail(ErrorCode::kUnsupported, "[{}] is for {}; there is no GPU that can be used here: {}", artefact.where,
         wanted.text(), why);
  const DeviceKind found = backend.kind();
  if (found.arch != wanted.arch)
    fail(ErrorCode::kUnsupported, "[{}] is for {}; this device is {}: its code is for {}, wanted is {}",
         artefact.where, wanted.text(), found.text(), wanted.arch, found.arch);
  if (wanted.units > 0 ? found.units != wanted.units : found.units < artefact.settings.workers)
    fail(ErrorCode::kUnsupported,
         "[{}] is for {} multiprocessors and has {} workers; this device ({}) has {}", artefact.where,
         wanted.units > 0 ? wanted.units : artefact.settings.workers, artefact.settings.workers, found.name,
         found.units);
}

// A number that the options leave open (0) becomes the programs' number; any other must be equal to it.
void take(const Artefact& artefact, const char* name, i32& option, i32 has) {
  require(option == 0 || option == has, "[{}] has {} = {}; wanted is {}; compile it with that",
          artefact.where, name, has, option);
  option = has;
}
// Programs may have room for more than the options ask for.
void take_room(const Artefact& artefact, const char* name, i32& option, i32 has) {
  require(option <= has, "[{}] has {} = {}; wanted is {}; compile it with that", artefact.where, name, has,
          option);
  option = has;
}

}  // namespace

Artefact make_artefact(const std::shared_ptr<const Model>& model, EngineOptions options,
                       const DeviceKind& device) {
  options.executor = device.executor;
  if (options.workers == 0) options.workers = device.units;
  const Planner planner = make_planner(model, options);
  const Target target = target_of(options);
  Artefact artefact{.made_by = std::string(build_name()),
                    .compiler = "",
                    .model = model->info().family,
                    .checkpoint = model->fingerprint(),
                    .device = device,
                    .settings = settings_of(options, planner, target),
                    .programs = {},
                    .code = {},
                    .where = ""};
  const Backend& backend = backend_of(device.executor);
  const bool has_code = !device.arch.empty();
  if (has_code) artefact.compiler = backend.compiler->name();  // throws when there is no compiler
  std::vector<Program> programs;
  for (i32 rows : planner.row_classes()) {
    const i32 sequences = std::min(rows, options.max_sequences);
    programs.push_back(planner.program(rows, sequences));
    artefact.programs.push_back(prove(programs.back(), rows, sequences));
  }
  if (has_code) artefact.code = backend.compiler->compile(programs, device.arch);
  return artefact;
}

void require_memory(const Program& program, const Graph& graph) {
  std::map<std::string, i64> bytes;
  for (const Buffer& buffer : graph.buffers()) bytes[buffer.name] = buffer.bytes;
  for (const ProgramBuffer& buffer : program.buffers) {
    const Buffer& info = buffer.info;
    if (info.kind != BufferKind::kWeight && info.kind != BufferKind::kTable &&
        info.kind != BufferKind::kPages)
      continue;
    const auto found = bytes.find(info.name);
    if (found == bytes.end() || found->second != info.bytes)
      fail(ErrorCode::kIo, "[{}] its buffer {} has {} bytes; the model's has {}", program.name, info.name,
           info.bytes, found == bytes.end() ? 0 : found->second);
  }
}

void take_settings(const Model& model, EngineOptions& options) {
  const Artefact& artefact = *options.artefact;
  const ProgramSettings& has = artefact.settings;
  if (const std::string here = model.fingerprint(); here != artefact.checkpoint)
    fail(ErrorCode::kUnsupported, "[{}] is for checkpoint {} ({}); this one is {} ({})", artefact.where,
         artefact.checkpoint, artefact.model, here, model.info().family);
  require_device(artefact, options.executor);
  require(options.all_logits == has.all_logits, "[{}] its programs give logits of {}; wanted are those of {}",
          artefact.where, has.all_logits ? "every row" : "the last row",
          options.all_logits ? "every row" : "the last row");
  require(!options.keep_buffers, "[{}] its programs use buffers again; wanted is that each is kept",
          artefact.where);
  const i32 kv_dtype = options.kv_dtype ? i32(*options.kv_dtype) : -1;
  require(kv_dtype == has.kv_dtype, "[{}] has KV pages of type {}; wanted is {} (-1: as the weights)",
          artefact.where, has.kv_dtype, kv_dtype);
  take(artefact, "workers", options.workers, has.workers);
  take_room(artefact, "max_context", options.max_context, has.max_context);
  take_room(artefact, "max_sequences", options.max_sequences, has.max_sequences);
  options.page_size = has.page_size;
  take(artefact, "split_unit", options.split_unit, has.split_unit);
  take(artefact, "max_splits", options.max_splits, has.max_splits);
  options.scheduler = has.scheduler;
  if (!artefact.device.arch.empty()) options.target = gpu_target(has.workers);
}

}  // namespace heddle
