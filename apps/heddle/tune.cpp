// heddle tune: times the configurations of an op for given sizes, or what decides a model's programs, and keeps the best
// for this device.
#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <utility>

#include <fmt/core.h>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/engine_flags.h"
#include "apps/heddle/support/interrupt.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/element.h"
#include "heddle/base/file.h"
#include "heddle/engine/program_tuner.h"
#include "heddle/ir/executor.h"
#include "heddle/ir/registry.h"
#include "heddle/tune/op_tuner.h"

namespace heddle {
namespace {

struct TuneFlags {
  EngineFlags engine;  // its model is what is tuned: an op, or the folder of a model
  std::string dtype = "f32", backend = "cpu";
  std::vector<std::string> sizes, attributes;
  i32 workers = 1, max_configs = 0;
  bool allow_reorder = false;
  TuneWork work;

  tune::Settings settings() const {
    return {.policy = tune::Policy::kPickBest,
            .max_configs = max_configs,
            .num_workers = workers,
            .allow_reorder = allow_reorder};
  }
};

const Backend& backend_named(const std::string& name) {
  std::string known;
  for (const Backend* backend : all_backends()) {
    if (backend->name == name) return *backend;
    known += (known.empty() ? "" : ", ") + std::string(backend->name);
  }
  fail(ErrorCode::kInvalidArgument, "[tune] --backend {} is not one; there are {}", name, known);
}

// "M=512" -> {M, 512}
std::pair<std::string, std::string> split(const std::string& text, const char* flag) {
  const size_t at = text.find('=');
  require(at != std::string::npos && at > 0, "[tune] {} {} has no =; write a name, = and a value", flag,
          text);
  return {text.substr(0, at), text.substr(at + 1)};
}

// The inputs of a call, in the memory of its device.
class Operands {
 public:
  Operands(const OpSpec& op, const TuneFlags& flags, MemorySpace* space)
      : op_(op), space_(space), dtype_(parse_dtypes(flags.dtype).at(0)), args_(op.defaults) {
    for (const std::string& attribute : flags.attributes) {
      const auto [name, value] = split(attribute, "--attribute");
      const Field* const field = find_field(op.fields, name);
      require(field && field->is_attribute(), "[{}] has no attribute {}", op.name, name);
      parse_attribute(op.name, *field, args_.data(), value);
    }
    for (const std::string& size : flags.sizes) {
      const auto [name, value] = split(size, "--size");
      const char* const end = value.data() + value.size();
      const auto [stop, error] = std::from_chars(value.data(), end, sizes_[name]);
      require(error == std::errc{} && stop == end && sizes_[name] > 0,
              "[tune] --size {} must be a whole number of 1 or more", size);
    }
    for (const Field& field : op.fields)
      if (field.is_tensor() && !field.writes() && !field.optional && field.is_whole()) make(field);
  }
  ~Operands() {
    for (std::byte* const memory : memory_)
      space_ ? space_->release(memory) : ::operator delete(memory, std::align_val_t(128));
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;
  const std::byte* args() const { return args_.data(); }

 private:
  void make(const Field& field) {
    std::vector<i64> size;
    for (const FieldDim& dim : field.dims) {
      const auto found = sizes_.find(dim.name);
      require(found != sizes_.end(), "[{}] {} is [{}], and {} has no size; give --size {}=...", op_.name,
              field.name, field.dims_text, dim.name, dim.name);
      size.push_back(i64(found->second) * dim.scale);
    }
    TensorRef ref{.dtype = field.allows(dtype_) ? dtype_ : field.dtypes.at(0), .size = size};
    i64 elements = 1;
    for (const i64 each : size) elements *= each;
    const auto bytes = size_t(bytes_of(ref.dtype, elements));
    std::vector<std::byte> values(bytes);
    fill(ref.dtype, elements, values.data());
    memory_.push_back(space_ ? space_->allocate(bytes)
                             : static_cast<std::byte*>(::operator new(bytes, std::align_val_t(128))));
    copy_to(space_, memory_.back(), values.data(), bytes);
    ref.data = memory_.back();
    field.tensor(args_.data()) = tensor_of(op_.name, field.name, ref);
  }

  static void fill(DType dtype, i64 elements, std::byte* values) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> some(-1, 1);
    for (i64 i = 0; i < elements; ++i)
      store_number(dtype, values, i, dtype == DType::kI8 ? 1.0 : double(some(random)));
  }

  const OpSpec& op_;
  MemorySpace* const space_;
  const DType dtype_;
  std::vector<std::byte> args_;
  std::map<std::string, i32> sizes_;
  std::vector<std::byte*> memory_;
};

void tune_model(const Command& command, const TuneFlags& flags) {
  require(path_exists(flags.engine.model), "[tune] {} is neither an op nor the folder of a model",
          flags.engine.model);
  for (const char* const flag : {"--size", "--attribute", "--dtype", "--backend"})
    require(!command.given(flag), "[tune] {} is for an op; {} is a model's folder", flag, flags.engine.model);
  EngineOptions options = flags.engine.options();
  options.run.cancelled = interrupted;
  const std::shared_ptr<const Model> model = load_model(flags.engine.model);
  const TunedPrograms best = tune_programs(model, options, flags.work, flags.settings());
  print(best.text);
  print(fmt::format("{} of {} and {} tokens on {}: {}, {:.2f} ms\n", model->info().family, flags.work.prompt,
                    flags.work.answer, backend_of(options.executor).device(options.device), best.summary(),
                    1e-6 * best.ns));
}

void tune_op(const Command& command, const TuneFlags& flags) {
  for (const char* const flag : {"--executor", "--generic", "--prompt", "--answer"})
    require(!command.given(flag), "[tune] {} is for a model; {} is an op", flag, flags.engine.model);
  const OpSpec& op = get_op(flags.engine.model);
  const i32 device = flags.engine.asked.device;
  require(op.configs != nullptr, "[{}] has no configurations to choose from", op.name);
  for (const Field& field : op.fields)
    require(!field.is_weight() && !needs_step_record(op),
            "[{}] is a part of programs: heddle tune MODEL tunes its configurations there", op.name);
  const Backend& backend = backend_named(flags.backend);
  tune::OpTuner& tuner = tune::OpTuner::of_process(backend, device);
  const Operands operands(op, flags, tuner.space());
  const CallSite site{.device = tuner.space() ? device : -1, .threads = flags.engine.asked.threads};
  const tune::SettingsScope scope(flags.settings());
  const auto tuned = tuner.choose(op, operands.args(), site);
  require(tuned != nullptr, "[{}] has one configuration for such a call: there is nothing to choose",
          op.name);
  print(tuned->text);
  print(fmt::format("{} on {}: {}, {:.0f} ns a call{}\n", tune::key_of_call(op, operands.args(), site).text(),
                    backend.device(device), tuned->summary(), tuned->ns,
                    tuned->text.empty() ? ", known before" : ""));
}

}  // namespace

void add_tune(CLI::App& app) {
  auto flags = std::make_shared<TuneFlags>();
  Command command(app, "tune",
                  "Find the fastest configuration of an op, or of a model's programs, and keep it");
  command.argument("what", &flags->engine.model, "an op, such as matmul, or the folder of a model",
                   {.required = true});
  command.argument("--size", &flags->sizes, "op: sizes of dimensions: M=512,N=1024,K=1024",
                   {.separator = ','});
  command.argument("--attribute", &flags->attributes, "op: attributes: eps=1e-6", {.separator = ','});
  command.argument("--dtype", &flags->dtype, "op: dtype of its inputs");
  command.argument("--backend", &flags->backend, "op: cpu or cuda");
  command.argument("--prompt", &flags->work.prompt, "model: tokens of the prompt whose answer is timed");
  command.argument("--answer", &flags->work.answer, "model: tokens of that answer");
  flags->engine.add_executor_to(command);
  flags->engine.add_threads_to(command);
  command.argument("--workers", &flags->workers, "configurations that are made at once");
  command.argument("--max-configs", &flags->max_configs, "try at most so many; 0: all");
  command.argument("--allow-reorder", &flags->allow_reorder, "those that add in another order may win");
  command.footer(
      "Calls of the op from Python and C++ take it from then on. Of a model, the scheduler and the\n"
      "configurations of its ops are chosen, which change no result: whoever loads it on this device\n"
      "with the same options, and none of these, has them, and --verbose says so. It lies in\n"
      "$HEDDLE_TUNED, or in the folder tuned of heddle's cache.\n"
      "Examples:\n"
      "  heddle tune matmul --size M=512,N=1024,K=1024\n"
      "  heddle tune models/storyteller --prompt 128 --answer 64");
  command.action([command, flags] {
    const std::vector<const OpSpec*> ops = all_ops();
    const bool is_op =
        std::ranges::any_of(ops, [&](const OpSpec* op) { return op->name == flags->engine.model; });
    is_op ? tune_op(command, *flags) : tune_model(command, *flags);
  });
}

}  // namespace heddle
