// heddle tune: times the configurations of an op for given sizes, and keeps the best one for this device.
#include <charconv>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <utility>

#include <fmt/core.h>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/element.h"
#include "heddle/ir/executor.h"
#include "heddle/ir/registry.h"
#include "heddle/tune/op_tuner.h"

namespace heddle {
namespace {

struct TuneFlags {
  std::string op, dtype = "f32", backend = "cpu";
  std::vector<std::string> sizes, attributes;
  i32 device = 0, threads = 0, workers = 1, max_configs = 0;
  bool allow_reorder = false;
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

void run(const TuneFlags& flags) {
  const OpSpec& op = get_op(flags.op);
  require(op.configs != nullptr, "[{}] has no configurations to choose from", op.name);
  for (const Field& field : op.fields)
    require(!field.is_weight() && !needs_step_record(op),
            "[{}] is a part of programs: compare its configurations with heddle bench --config", op.name);
  const Backend& backend = backend_named(flags.backend);
  tune::OpTuner& tuner = tune::OpTuner::of_process(backend, flags.device);
  const Operands operands(op, flags, tuner.space());
  const CallSite site{.device = tuner.space() ? flags.device : -1, .threads = flags.threads};
  const tune::SettingsScope scope({.policy = tune::Policy::kPickBest,
                                   .max_configs = flags.max_configs,
                                   .num_workers = flags.workers,
                                   .allow_reorder = flags.allow_reorder});
  const auto tuned = tuner.choose(op, operands.args(), site);
  require(tuned != nullptr, "[{}] has one configuration for such a call: there is nothing to choose",
          op.name);
  print(tuned->text);
  print(fmt::format("{} on {}: {}, {:.0f} ns a call{}\n", tune::key_of_call(op, operands.args(), site).text(),
                    backend.device(flags.device), tuned->summary(), tuned->ns,
                    tuned->text.empty() ? ", known before" : ""));
}

}  // namespace

void add_tune(CLI::App& app) {
  auto flags = std::make_shared<TuneFlags>();
  Command command(app, "tune", "Find the best configuration of an op for this device, and keep it");
  command.argument("op", &flags->op, "the op, such as matmul", {.required = true});
  command.argument("--size", &flags->sizes, "sizes of dimensions: M=512,N=1024,K=1024", {.separator = ','});
  command.argument("--attribute", &flags->attributes, "attributes: eps=1e-6", {.separator = ','});
  command.argument("--dtype", &flags->dtype, "dtype of its inputs");
  command.argument("--backend", &flags->backend, "cpu or cuda");
  command.argument("--device", &flags->device, "which GPU, as heddle env numbers them");
  command.argument("--threads", &flags->threads, "threads of a call on a CPU; 0: one for each core");
  command.argument("--workers", &flags->workers, "configurations that are compiled at once");
  command.argument("--max-configs", &flags->max_configs, "try at most so many; 0: all");
  command.argument("--allow-reorder", &flags->allow_reorder, "those that add in another order may win");
  command.footer(
      "Calls from Python and C++ take it from then on. It lies in $HEDDLE_TUNED, or in the folder tuned of\n"
      "heddle's cache.\n"
      "Example: heddle tune matmul --size M=512,N=1024,K=1024");
  command.action([flags] { run(*flags); });
}

}  // namespace heddle
