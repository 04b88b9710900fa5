// heddle tune: times the configurations of an op for given sizes, or what decides a model's programs, and keeps the best
// for this device.
#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <utility>

#include <fmt/ranges.h>

#include "apps/heddle/support/columns.h"
#include "apps/heddle/support/command.h"
#include "apps/heddle/support/engine_flags.h"
#include "apps/heddle/support/interrupt.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/element.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/near_names.h"
#include "heddle/engine/device_name.h"
#include "heddle/engine/program_tuner.h"
#include "heddle/ir/executor/executor.h"
#include "heddle/ir/registry.h"
#include "heddle/tune/op_tuner.h"

namespace heddle {
namespace {

struct TuneFlags {
  EngineFlags engine;  // its model is what is tuned: an op, or the folder of a model
  std::string dtype = "f32", backend;
  std::vector<std::string> sizes, attributes;
  bool json = false;
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

constexpr const char* kWords =
    "ratio: to the best one's time, where each round counts by its own speed, the\n"
    "median; spread: the middle half of the rounds; ms: the best one's median, times\n"
    "the ratio. tied: within 1 %, of which the first one is kept. dropped: far slower\n"
    "in the first rounds.\n";

Json json_of(const std::vector<tune::Tried>& all) {
  Json rows = Json::array();
  for (const tune::Tried& one : all)
    rows.push_back(Json::object({{"config", one.config},
                                 {"state", one.state},
                                 {"why", one.why},
                                 {"rounds", one.rounds},
                                 {"ratio", one.ratio},
                                 {"low", one.low},
                                 {"high", one.high},
                                 {"ns", one.ns}}));
  return rows;
}

// Ops whose calls have configurations to choose from.
std::vector<std::string> tunable_ops() {
  std::vector<std::string> names;
  for (const OpSpec* op : all_ops())
    if (op->configs && !needs_step_record(*op) &&
        std::ranges::none_of(op->fields, [](const Field& field) { return field.is_weight(); }))
      names.push_back(op->name);
  return names;
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
  require(path_exists(flags.engine.model), "[tune] {} is neither an op nor the folder of a model{}",
          flags.engine.model, did_you_mean(flags.engine.model, tunable_ops()));
  for (const char* const flag : {"--size", "--attribute", "--dtype"})
    require(!command.given(flag), "[tune] {} is for an op; {} is a model's folder", flag, flags.engine.model);
  EngineOptions options = flags.engine.options();
  options.run.cancelled = interrupted;
  const std::shared_ptr<const Model> model = load_model(flags.engine);
  warn_of_threads(options.threads);
  note_what_stays("kept nothing");
  const TunedPrograms best = tune_programs(model, options, flags.work, flags.settings());
  const std::string device = backend_of(options.executor).device(options.device);
  if (flags.json) {
    Json choices = Json::array();
    for (const TunedChoice& choice : best.choices)
      choices.push_back(Json::object({{"what", choice.what}, {"tried", json_of(choice.tried)}}));
    return print_json(Json::object({{"model", model->info().family},
                                    {"device", device},
                                    {"prompt", flags.work.prompt},
                                    {"answer", flags.work.answer},
                                    {"scheduler", best.scheduler},
                                    {"config", best.config},
                                    {"ns", best.ns},
                                    {"choices", choices}}));
  }
  for (const TunedChoice& choice : best.choices) print("{}\n{}\n", choice.what, tune::text_of(choice.tried));
  print(kWords);
  print("{} of {} and {} tokens on {}:\n{}, {:.2f} ms\n", model->info().family, flags.work.prompt,
        flags.work.answer, device, best.summary(), 1e-6 * best.ns);
}

void tune_op(const Command& command, const TuneFlags& flags) {
  for (const char* const flag : {"--executor", "--generic", "--prompt", "--answer"})
    require(!command.given(flag), "[tune] {} is for a model; {} is an op", flag, flags.engine.model);
  const OpSpec& op = get_op(flags.engine.model);
  const DeviceName named =
      flags.engine.device.empty() ? DeviceName{} : parse_device(flags.engine.device, "--device");
  const DefaultExecutor executor = executor_on(named);
  const i32 device = executor.device;
  require(op.configs != nullptr, "[{}] has no configurations to choose from", op.name);
  for (const Field& field : op.fields)
    require(!field.is_weight() && !needs_step_record(op),
            "[{}] is a part of programs: heddle tune MODEL tunes its configurations there", op.name);
  const Backend& backend = backend_of(executor.name);
  tune::OpTuner& tuner = tune::OpTuner::of_process(backend, device);
  const Operands operands(op, flags, tuner.space());
  const CallSite site{.device = tuner.space() ? device : -1, .threads = flags.engine.asked.threads};
  note_what_stays("kept nothing");
  const tune::SettingsScope scope(flags.settings());
  const auto tuned = tuner.choose(op, operands.args(), site);
  require(tuned != nullptr, "[{}] has one configuration for such a call: there is nothing to choose",
          op.name);
  const std::string call = tune::key_of_call(op, operands.args(), site).text();
  if (flags.json)
    return print_json(Json::object({{"call", call},
                                    {"device", backend.device(device)},
                                    {"config", tuned->config.text()},
                                    {"ns", tuned->ns},
                                    {"known_before", tuned->tried.empty()},
                                    {"tried", json_of(tuned->tried)}}));
  if (!tuned->tried.empty()) print("{}{}", tune::text_of(tuned->tried), kWords);
  print("{}\n{}, {:.4f} ms a call{}\n",
        wrapped(fmt::format("{} on {}:", call, backend.device(device)), output_columns(), 4),
        tuned->summary(), 1e-6 * tuned->ns, tuned->tried.empty() ? ", known before" : "");
}

}  // namespace

void add_tune(CLI::App& app) {
  auto flags = std::make_shared<TuneFlags>();
  Command command(app, "tune",
                  "Find the fastest configuration of an op, or of a model's programs, and keep it");
  command.argument(
      "what", &flags->engine.model, "an op, such as matmul, or the folder of a model",
      {.required = true, .names = Names::kFolder, .also = fmt::format("{}", fmt::join(tunable_ops(), ", "))});
  command.argument("--size", &flags->sizes, "op: sizes of dimensions: M=512,N=1024,K=1024",
                   {.separator = ','});
  command.argument("--attribute", &flags->attributes, "op: attributes: eps=1e-6", {.separator = ','});
  command.argument("--dtype", &flags->dtype, "op: dtype of its inputs");
  command.argument("--backend", &flags->backend, "", {.instead = "--device cpu, or --device cuda"});
  command.argument("--prompt", &flags->work.prompt, "model: tokens of the prompt whose answer is timed");
  command.argument("--answer", &flags->work.answer, "model: tokens of that answer");
  flags->engine.add_executor_to(command);
  flags->engine.add_threads_to(command);
  command.argument("--workers", &flags->workers, "configurations that are made at once");
  command.argument("--max-configs", &flags->max_configs, "try at most so many; 0: all");
  command.argument("--allow-reorder", &flags->allow_reorder, "those that add in another order may win");
  command.argument("--json", &flags->json, "print JSON");
  command.footer(
      "Calls of the op from Python and C++ take it from then on. Of a model, the scheduler and the\n"
      "configurations of its ops are chosen, which change no result: whoever loads it on this device\n"
      "with the same options, and none of these, has them, and --verbose says so. It lies in\n"
      "$HEDDLE_TUNED, or in the folder tuned of heddle's cache.\n"
      "Examples:\n"
      "  heddle tune matmul --size M=512,N=1024,K=1024\n"
      "  heddle tune my_file.py:MyOp --size M=512,D=64, which is python3 -m heddle.tune\n"
      "  heddle tune models/storyteller --prompt 128 --answer 64");
  command.action([command, flags] {
    try {
      find_op(flags->engine.model) ? tune_op(command, *flags) : tune_model(command, *flags);
    } catch (const Error&) {
      if (interrupted()) fail(ErrorCode::kDevice, "[tune] interrupted; kept nothing");
      throw;
    }
  });
}

}  // namespace heddle
