#include "heddle/engine/options.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/engine/sequences.h"
#include "heddle/ir/registry.h"
#include "heddle/schedule/schedule.h"

namespace heddle {
namespace {

constexpr const char* kAsWeights = "as the weights";
constexpr const char *kAsCodes = "codes", *kAsFloats = "floats";  // EngineOptions::weights

std::string joined(const std::string& names, const char* name) {
  return names.empty() ? name : names + ", " + name;
}

}  // namespace

std::string executor_names() {
  std::string names;
  for (const Backend* backend : all_backends())
    for (const ExecutorSpec& executor : backend->executors) names = joined(names, executor.name);
  return names;
}

std::string scheduler_names() {
  std::string names;
  for (const Scheduler* scheduler : all_schedulers()) names = joined(names, scheduler->name);
  return names;
}

std::string weight_kinds() {
  return joined(kAsCodes, kAsFloats);
}

std::string Option::help() const {
  if (choices) return fmt::format("{}: {}{}{}", doc, choices(), zero.empty() ? "" : "; default: ", zero);
  return fmt::format("{}{}{}", doc, zero.empty() ? "" : "; 0: ", zero);
}

std::string option_text(i32 value) {
  return std::to_string(value);
}
std::string option_text(bool value) {
  return value ? "true" : "false";
}
std::string option_text(const std::string& value) {
  return value;
}
std::string option_text(const std::optional<DType>& value) {
  return value ? name(*value) : kAsWeights;
}

bool read_option(const std::string& text, i32& value) {
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && at == end;
}
bool read_option(const std::string& text, bool& value) {
  value = text == "true";
  return value || text == "false";
}
bool read_option(const std::string& text, std::string& value) {
  value = text;
  return true;
}
bool read_option(const std::string& text, std::optional<DType>& value) {
  value.reset();
  for (int type = 0; type < kNumDTypes; ++type)
    if (text == name(DType(type))) value = DType(type);
  return value || text == kAsWeights;
}

ChosenConfigs read_configs(const std::string& text) {
  ChosenConfigs configs;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    const size_t colon = one.find(':');
    require(colon != one.npos, "[engine] config has '{}'; must be OP:NAME=VALUE,...", one);
    const std::string op(one.substr(0, colon));
    require(get_op(op).configs != nullptr, "[engine] config names {}, which has no configurations", op);
    require(configs.emplace(op, OpConfig::parse(one.substr(colon + 1))).second,
            "[engine] config has {} twice", op);
  }
  return configs;
}

namespace {

// Each configuration is one of a call in some program.
void require_configs(const Planner& planner, const TilingTarget& target, const ChosenConfigs& configs) {
  if (configs.empty()) return;
  ChosenConfigs left = configs;
  std::vector<Graph> graphs;
  for (const i32 rows : planner.row_classes()) {
    Graph& graph = graphs.emplace_back(planner.fused(rows, 1));
    for (const std::string& op : choose_configs(graph, target, configs)) left.erase(op);
  }
  for (const auto& [op, config] : left) {
    const Part* other = nullptr;  // a call of the op, with other configurations if one has any
    for (const Graph& graph : graphs)
      for (const Node& node : graph.nodes()) {
        const Part& part = node.main_part();
        if (part.op->name == op && (!other || !configs_of(*part.op, part.args.data(), target).empty()))
          other = &part;
      }
    require(other != nullptr, "[engine] config names {}, which this model's programs do not call", op);
    find_config(*other->op, other->args.data(), target, config);  // throws
  }
}

}  // namespace

void validate(const EngineOptions& options) {
  read_configs(options.config);
  // Programs for device 0 are also planned where there is none.
  if (const Backend& backend = backend_of(options.executor); options.device != 0)
    backend.device(options.device);
  if (!options.scheduler.empty()) get_scheduler(options.scheduler);
  require(options.weights.empty() || options.weights == kAsCodes || options.weights == kAsFloats,
          "[engine] weights = {}; must be {}", options.weights, weight_kinds());
  visit_plain(options, [](const char* name, const auto& value, const Option& option) {
    if constexpr (std::same_as<std::remove_cvref_t<decltype(value)>, i32>)
      require(option.most == 0 || (value >= option.least && value <= option.most),
              "[engine] {} = {}; must be {}{} to {}", name, value, option.least,
              option.zero.empty() ? "" : " (" + option.zero + ")", option.most);
  });
}

Target target_of(const EngineOptions& options) {
  if (options.target) return *options.target;
  const ExecutorSpec& executor = get_executor(options.executor);
  i32 workers = options.workers;
  if (workers == 0) workers = executor.workers ? executor.workers(options.device) : options.threads;
  if (workers == 0) workers = allowed_cores();
  return executor.space ? gpu_target(workers) : cpu_target(workers);
}

std::string context_note(const ModelInfo& model, i32 max_context) {
  if (max_context <= model.default_positions()) return "";
  return fmt::format("[engine] max_context = {}: {}", max_context, model.position_limit);
}

void complete(const ModelInfo& model, EngineOptions& options) {
  require(options.max_context >= 0 && options.max_context <= model.max_positions,
          "[engine] max_context = {}; the model allows 1 to {}{}{}", options.max_context, model.max_positions,
          model.position_limit.empty() ? "" : ": ", model.position_limit);
  if (options.max_context == 0) options.max_context = std::min(model.default_positions(), kDefaultContext);
  if (options.scheduler.empty()) options.scheduler = kDefaultScheduler;
  if (options.threads == 0) options.threads = allowed_cores();
  const Target target = target_of(options);
  if (options.workers == 0) options.workers = target.topology.workers;
  if (options.weights.empty()) options.weights = kAsFloats;
  if (options.splits.unit == 0) options.splits.unit = target.splits.unit;
  if (options.splits.most == 0)
    options.splits.most = std::clamp(target.most_parts / std::max(model.kv_heads, 1), 1, target.splits.most);
  if (target.fixed_splits) {  // long enough for the context
    const i32 units = (options.max_context + options.splits.unit - 1) / options.splits.unit;
    options.splits.unit *= (units + options.splits.most - 1) / options.splits.most;
  }
}

Planner make_planner(std::shared_ptr<const Model> model, EngineOptions& o) {
  validate(o);
  complete(model->info(), o);
  const Target target = target_of(o);
  Capacity capacity = {.context = o.max_context,
                       .pages_per_sequence = (o.max_context + o.page_size - 1) / o.page_size,
                       .page_size = o.page_size,
                       .slots = o.max_sequences,
                       .splits = o.splits,
                       .window = model->info().window,
                       .kv_dtype = o.kv_dtype,
                       .codes = o.weights == kAsCodes,
                       .all_logits = o.all_logits};
  const i64 pages = most_pages(capacity, o.max_sequences,
                               std::max<i64>(target.most_rows, i64(StepDevice::kHistory) * o.max_sequences));
  require(pages <= INT32_MAX, "[engine] {} sequences of {} positions are {} pages; at most {}",
          o.max_sequences, o.max_context, pages, INT32_MAX);
  capacity.num_pages = i32(pages);
  if (o.kv_pages != 0) {
    const i64 least = most_pages(capacity, 1, std::max<i64>(target.most_rows, StepDevice::kHistory));
    require(o.kv_pages >= least,
            "[engine] kv_pages = {}; must be {} or more, which one sequence of {} positions needs alone",
            o.kv_pages, least, o.max_context);
    capacity.num_pages = i32(std::min<i64>(o.kv_pages, pages));
  }
  const ChosenConfigs configs = read_configs(o.config);
  Planner planner(std::move(model), target, capacity,
                  CompileOptions{.scheduler = o.scheduler,
                                 .passes = o.passes,
                                 .configs = configs,
                                 .costs = o.costs,
                                 .keep_buffers = o.keep_buffers});
  require_configs(planner, target.tiling, configs);
  return planner;
}

}  // namespace heddle
