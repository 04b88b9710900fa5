// heddle diff: runs the same steps on two executors and compares every buffer, op by op.
#include <cmath>

#include <fmt/format.h>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/engine_flags.h"
#include "apps/heddle/support/input.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/element.h"
#include "heddle/base/error.h"
#include "heddle/base/json.h"
#include "heddle/engine/written.h"

namespace heddle {
namespace {

struct DiffFlags {
  EngineFlags engine;
  std::string a = "reference", b = "threads";
  std::string tokens = "1,2,3,4,5";
  double bound = 0;
  bool json = false;
};

struct Difference {
  double error = 0, largest = 0;  // the largest |a - b|, and the largest |a|
  size_t values = 0;
};

Difference compare(std::span<const std::byte> a, std::span<const std::byte> b, DType dtype) {
  Difference result;
  result.values = a.size() / size_t(size_of(dtype));
  for (size_t i = 0; i < result.values; ++i) {
    const size_t at = i * size_t(size_of(dtype));
    const double x = load_number(dtype, &a[at]), y = load_number(dtype, &b[at]);
    if (std::isnan(x) && std::isnan(y)) continue;
    const double error = std::isnan(x - y) ? INFINITY : std::abs(x - y);
    result.error = std::max(result.error, error);
    if (std::isfinite(x)) result.largest = std::max(result.largest, std::abs(x));
  }
  return result;
}

// If one of the two executors needs programs for a GPU, both run these, so that they have the same buffers.
EngineOptions options_for(const DiffFlags& flags) {
  EngineFlags engine = flags.engine;
  engine.asked.executor = get_executor(flags.b).space ? flags.b : flags.a;  // --device is for that of a GPU
  EngineOptions options = engine.options();
  options.keep_buffers = true;
  for (const std::string& name : {flags.b, flags.a})
    if (options.executor = name; get_executor(name).space) options.target = target_of(options);
  return options;
}

struct Ran {
  std::unique_ptr<Engine> engine;
  i32 chosen = -1;
};

Ran run_on(const DiffFlags& flags, EngineOptions options, const std::string& executor,
           std::span<const i32> tokens) {
  options.executor = executor;
  if (!get_executor(executor).space) options.device = 0;
  Ran ran{load_engine(flags.engine, options)};
  const SequenceId sequence = ran.engine->open({});
  const StepRequest request{sequence, tokens, true};
  ran.chosen = ran.engine->step(std::span(&request, 1)).sampled[0];
  return ran;
}

// The executors round sums in different orders. With 16-bit weights, values between ops have 16 bits too.
double bound_of(const DiffFlags& flags, const Engine& engine) {
  if (flags.bound > 0) return flags.bound;
  return engine.info().weight_dtype == DType::kF32 ? 1e-3 : 5e-2;
}

// The buffers in the order of their calls, and the first call that is out of bounds; "": none.
struct Compared {
  struct Row {
    std::string buffer;
    Difference difference;
    bool bad = false;
  };
  std::vector<Row> rows;
  std::string first;
};

Compared compare_all(const Program& left, const Program& right, Engine& a, Engine& b, double bound) {
  Compared all;
  for (const Written& one : written_by(left)) {
    const Tensor& tensor = one.tensor;
    if (tensor.dtype == DType::kU8) continue;  // the step record
    const auto of = [&](Engine& engine, const Program& program) {
      return one.of(engine.buffer(program, tensor.buffer));
    };
    const Difference d = compare(of(a, left), of(b, right), tensor.dtype);
    const bool bad = d.error > bound * (1 + d.largest);
    all.rows.push_back({left.buffers[tensor.buffer].info.name, d, bad});
    if (bad && all.first.empty()) all.first = left.calls[one.call].name;
  }
  return all;
}

std::string table(const Compared& all) {
  std::string text = fmt::format("{:<44} {:>12} {:>12}\n", "node", "max |a - b|", "max |a|");
  for (const Compared::Row& row : all.rows)
    text += fmt::format("{:<44} {:>12.3g} {:>12.3g}{}\n", row.buffer, row.difference.error,
                        row.difference.largest, row.bad ? "  <- out of bounds" : "");
  return text;
}

Json json_of(const DiffFlags& flags, const Compared& all, double bound, std::vector<i32> chosen) {
  Json rows = Json::array();
  for (const Compared::Row& row : all.rows)
    rows.push_back(Json::object({{"node", row.buffer},
                                 {"error", row.difference.error},
                                 {"largest", row.difference.largest},
                                 {"within", !row.bad}}));
  return Json::object({{"a", flags.a},
                       {"b", flags.b},
                       {"bound", bound},
                       {"agree", all.first.empty()},
                       {"chosen", chosen},
                       {"nodes", rows}});
}

void run(const DiffFlags& flags) {
  const std::vector<i32> tokens = parse_tokens(flags.tokens, "--tokens");
  require(flags.bound >= 0, "[diff] --bound is {}; must not be negative", flags.bound);
  const EngineOptions options = options_for(flags);
  const Ran ran_a = run_on(flags, options, flags.a, tokens), ran_b = run_on(flags, options, flags.b, tokens);
  Engine &a = *ran_a.engine, &b = *ran_b.engine;
  const double bound = bound_of(flags, a);
  const i32 rows = i32(tokens.size());
  const Program &left = a.program(rows, 1), &right = b.program(rows, 1);
  require(left.calls.size() == right.calls.size(),
          "[diff] the programs have {} and {} calls; they must be the same", left.calls.size(),
          right.calls.size());
  const Compared all = compare_all(left, right, a, b, bound);
  if (flags.json)
    print_json(json_of(flags, all, bound, {ran_a.chosen, ran_b.chosen}));
  else
    print(table(all));
  if (!all.first.empty())
    fail(ErrorCode::kInternal, "[diff] {} is the first op out of bounds ({} x (1 + max |a|))", all.first,
         bound);
  if (!flags.json)
    print("{} and {} agree within {:g} x (1 + max |a|);\nthey choose tokens {} and {}\n", flags.a, flags.b,
          bound, ran_a.chosen, ran_b.chosen);
}

}  // namespace

void add_diff(CLI::App& app) {
  auto flags = std::make_shared<DiffFlags>();
  Command command(app, "diff", "Compare two executors, op by op");
  flags->engine.add_program_to(command, "folder with config.json and *.safetensors");
  flags->engine.add_device_to(command);
  flags->engine.add_threads_to(command);
  command.argument("--a", &flags->a, "one executor", {.choices = executor_names()});
  command.argument("--b", &flags->b, "the other", {.choices = executor_names()});
  command.argument("--tokens", &flags->tokens, "token ids of the step, separated by commas");
  command.argument(
      "--bound", &flags->bound,
      "largest difference, relative to 1 + the largest value; 0: 0.001, with 16-bit weights 0.05");
  command.argument("--json", &flags->json, "print JSON");
  command.footer(
      "Both run the same step. Compares every tensor that a call writes, in the order of the calls.\n"
      "Fails at the first op beyond the bound. If one executor is for a GPU, both run the GPU's programs.\n"
      "Examples:\n"
      "  heddle diff models/storyteller --tokens 5,6,7 --workers 4\n"
      "  heddle diff models/storyteller --a threads --b megakernel");
  command.action([flags] { run(*flags); });
}

}  // namespace heddle
