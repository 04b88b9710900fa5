#include "heddle/engine/artefact.h"

#include <algorithm>
#include <map>
#include <type_traits>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/base/json.h"
#include "heddle/base/version.h"

namespace heddle {
namespace {

// Calls each(name, field, has, option) for each option that decides programs, with what the artefact has of it.
void each_setting(const Artefact& artefact, EngineOptions& options, const auto& each) {
  size_t known = 0;
  visit_plain(options, [&](const char* name, auto& field, const Option& option) {
    if (option.kept == Kept::kNot) return;
    ++known;
    const auto found = artefact.settings.find(name);
    std::remove_cvref_t<decltype(field)> has{};
    if (found == artefact.settings.end() || !read_option(found->second, has))
      fail(ErrorCode::kIo, "[{}] its setting {} is {}; the file was changed", artefact.where, name,
           found == artefact.settings.end() ? "missing" : "'" + found->second + "'");
    each(name, field, has, option);
  });
  if (known != artefact.settings.size())
    fail(ErrorCode::kIo, "[{}] has {} settings; this heddle knows {}", artefact.where,
         artefact.settings.size(), known);
}

template <class T>
bool fits(Kept kept, const T& asked, const T& has) {
  if (kept == Kept::kTaken || asked == has) return true;
  return kept == Kept::kSame ? asked == T{} : kept == Kept::kRoom && asked < has;
}

// Programs for a CPU have no target; those for a GPU also run on a CPU.
void require_device(const Artefact& artefact, const std::string& executor, i32 device) {
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
  const DeviceKind found = backend.kind(device);
  if (found.arch != wanted.arch)
    fail(ErrorCode::kUnsupported, "[{}] is for {}; this device is {}: its code is for {}, and must be for {}",
         artefact.where, wanted.text(), found.text(), wanted.arch, found.arch);
  const i32 workers = options_of(artefact).workers;
  if (wanted.units > 0 ? found.units != wanted.units : found.units < workers)
    fail(ErrorCode::kUnsupported,
         "[{}] is for {} multiprocessors and has {} workers; this device ({}) has {}", artefact.where,
         wanted.units > 0 ? wanted.units : workers, workers, found.name, found.units);
}

}  // namespace

Artefact make_artefact(const std::shared_ptr<const Model>& model, EngineOptions options,
                       const DeviceKind& device) {
  options.executor = device.executor;
  if (options.workers == 0) options.workers = device.units;
  const Planner planner = make_planner(model, options);
  Artefact artefact{.made_by = std::string(build_name()),
                    .compiler = "",
                    .model = model->info().family,
                    .checkpoint = model->fingerprint(),
                    .device = device,
                    .settings = settings_of(options),
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

std::map<std::string, std::string> settings_of(const EngineOptions& options) {
  std::map<std::string, std::string> settings;
  visit_plain(options, [&](const char* name, const auto& value, const Option& option) {
    if (option.kept != Kept::kNot) settings[name] = option_text(value);
  });
  return settings;
}

EngineOptions options_of(const Artefact& artefact) {
  EngineOptions options;
  each_setting(artefact, options,
               [](const char*, auto& option, const auto& has, const Option&) { option = has; });
  return options;
}

void take_settings(const Model& model, EngineOptions& options) {
  if (!options.artefact) return;
  const Artefact& artefact = *options.artefact;
  if (const std::string here = model.fingerprint(); here != artefact.checkpoint)
    fail(ErrorCode::kUnsupported, "[{}] is for checkpoint {} ({}); this one is {} ({})", artefact.where,
         artefact.checkpoint, artefact.model, here, model.info().family);
  require_device(artefact, options.executor, options.device);
  require(!options.keep_buffers, "[{}] its programs reuse buffers; must have been compiled with keep_buffers",
          artefact.where);
  const auto rows_of = [](bool all) { return all ? "every row" : "the last row"; };
  const bool all_logits = options_of(artefact).all_logits;
  require(options.all_logits == all_logits, "[{}] its programs give logits of {}; must be of {}",
          artefact.where, rows_of(all_logits), rows_of(options.all_logits));
  each_setting(artefact, options, [&](const char* name, auto& asked, const auto& has, const Option& option) {
    require(fits(option.kept, asked, has), "[{}] has {} = {}; must be {}: compile it with that",
            artefact.where, name, option_text(has), option_text(asked));
    asked = has;
  });
  if (!artefact.device.arch.empty()) options.target = gpu_target(options.workers);
}

namespace {

size_t code_bytes(const Artefact& artefact) {
  size_t bytes = 0;
  for (const auto& [name, code] : artefact.code) bytes += code.size();
  return bytes;
}

}  // namespace

Json json_of(const Artefact& artefact) {
  Json programs = Json::array();
  for (const ProvedProgram& program : artefact.programs)
    programs.push_back(Json::object({{"rows", program.rows},
                                     {"sequences", program.sequences},
                                     {"instructions", program.instructions},
                                     {"waits", program.waits},
                                     {"proof", program.proof}}));
  return Json::object({{"model", artefact.model},
                       {"checkpoint", artefact.checkpoint},
                       {"device", Json::object({{"name", artefact.device.name},
                                                {"executor", artefact.device.executor},
                                                {"arch", artefact.device.arch},
                                                {"multiprocessors", artefact.device.units}})},
                       {"made_by", artefact.made_by},
                       {"compiler", artefact.compiler},
                       {"settings", artefact.settings},
                       {"programs", programs},
                       {"kernels", artefact.code.size()},
                       {"code_bytes", code_bytes(artefact)}});
}

std::string print_artefact(const Artefact& artefact) {
  const EngineOptions made = options_of(artefact);
  std::string text = fmt::format(
      "for         {}, checkpoint {}\ndevice      {}\nmade by     heddle {}\n"
      "programs    {} workers, {}, contexts of {}, {} sequences{}{}\n",
      artefact.model, artefact.checkpoint, artefact.device.text(), artefact.made_by, made.workers,
      made.scheduler, made.max_context, made.max_sequences, made.all_logits ? ", logits of every row" : "",
      made.passes.fuse_epilogues && made.passes.fuse_prologues ? "" : ", nothing fused");
  for (const ProvedProgram& program : artefact.programs)
    text += fmt::format("  {:>4} rows of {}: {} instructions, {} waits, proof {}\n", program.rows,
                        program.sequences, program.instructions, program.waits, program.proof);
  if (artefact.code.empty()) return text + "code        none\n";
  return text + fmt::format("code        {} pieces, {:.1f} MB, {}\n", artefact.code.size(),
                            double(code_bytes(artefact)) * 1e-6, artefact.compiler);
}

}  // namespace heddle
