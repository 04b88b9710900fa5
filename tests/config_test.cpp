// Every configuration of every op over the op's cases (a dozen of them on a GPU), called by itself and in programs:
// within the bound of the case, and with the bits of the default unless it is marked as one that reorders sums.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <set>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "heddle/backend/cpu/op_call.h"
#include "heddle/backend/cuda/compiler/jit.h"
#include "heddle/backend/cuda/program/program_source.h"
#include "heddle/base/error.h"
#include "heddle/base/progress.h"
#include "heddle/engine/artefact.h"
#include "heddle/engine/program_tuner.h"
#include "heddle/ir/check/check.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/row_classes.h"
#include "heddle/ir/rules.h"
#include "heddle/ir/tile_grid.h"
#include "heddle/model/build/family.h"
#include "heddle/ops/linear/linear.h"
#include "heddle/ops/matmul/matmul.h"
#include "tests/support/call_runner.h"
#include "tests/support/case_runner.h"
#include "tests/support/golden.h"
#include "tests/support/rounds.h"
#include "tests/support/scratch.h"

namespace heddle {
namespace {

// The arguments as a call has them: what is given exists, though it has no memory yet.
std::vector<std::byte> inferred(const OpSpec& op, const Case& test) {
  std::vector<std::byte> args = test.args;
  op.infer(args.data());
  mark_given(op, args.data());
  return args;
}

// Which elements differ in their bits; "" if none does. Elements that nothing writes are NaN.
std::string difference(const std::vector<double>& got, const std::vector<double>& wanted) {
  if (got.size() != wanted.size()) return fmt::format("{} elements, not {}", got.size(), wanted.size());
  size_t count = 0, first = 0, last = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &wanted[i], sizeof(double)) == 0) continue;
    if (count++ == 0) first = i;
    last = i;
  }
  if (count == 0) return "";
  return fmt::format("{} of {} elements differ, from {} ({} and {}) to {}", count, got.size(), first,
                     got[first], wanted[first], last);
}

// Runs each case in its default and in each configuration. run(case, config) -> {problem, outputs}.
void expect_same(const OpSpec& op, const TilingTarget& target, auto&& run) {
  constexpr size_t kMostOnGpu = 12;  // each compiles a kernel for each configuration
  const std::vector<Case> cases = target.gpu ? chosen(op.cases(), kMostOnGpu) : op.cases();
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::vector<std::byte> args = inferred(op, cases[i]);
    const std::vector<OpConfig> configs = configs_of(op, args.data(), target);
    if (configs.empty()) continue;
    EXPECT_GE(configs.size(), 2u) << op.name << " case " << i << " has nothing to choose";
    EXPECT_FALSE(configs.front().reorders()) << op.name << " case " << i;
    const auto wanted = run(cases[i], nullptr);
    for (const OpConfig& config : configs) {
      const auto got = run(cases[i], &config);
      EXPECT_EQ(got.problem, "") << op.name << " case " << i << ", " << config.text();
      EXPECT_EQ(config.reorders() ? "" : difference(got.outputs, wanted.outputs), "")
          << op.name << " case " << i << ", " << config.text();
    }
  }
}

struct Run {
  const OpSpec* op;
  const Backend* backend;
  std::string executor;  // empty: calls by themselves
};

std::vector<Run> all_runs() {
  std::vector<Run> runs;
  for (const OpSpec* op : all_ops())
    for (const Backend* backend : all_backends()) {
      if (!op->configs) continue;
      if (backend->op_calls && !needs_step_record(*op)) runs.push_back({op, backend, ""});
      for (const ExecutorSpec& executor : backend->executors)
        if (std::string_view(executor.name) != "reference")  // which has no configurations
          runs.push_back({op, backend, executor.name});
    }
  return runs;
}

class OpConfigs : public testing::TestWithParam<Run> {
 protected:
  void SetUp() override {
    const Backend& backend = *GetParam().backend;
    if (std::string why = backend.executors[0].unavailable(); !why.empty())
      GTEST_SKIP() << backend.name << ": " << why;
  }
};

TEST_P(OpConfigs, GiveTheBitsOfTheDefaultUnlessMarked) {
  const auto& [op, backend, executor] = GetParam();
  TilingTarget target{.gpu = backend->executors[0].space != nullptr};
  if (!executor.empty())
    return expect_same(*op, target,
                       [&, op = op, executor = executor](const Case& test, const OpConfig* config) {
                         static const OpConfig plain;  // in the tiles of the target
                         return run_case(*op, test, executor, {.config = config ? config : &plain});
                       });
  std::optional<KernelTarget> kernels;
  if (target.gpu) kernels = backend->op_calls().kernels({.device = 0});
  if (kernels) target.kernels = &*kernels;
  expect_same(*op, target, [&, op = op, backend = backend](const Case& test, const OpConfig* config) {
    const CallResult result = run_call(*op, test, *backend, {.config = config});
    if (config && is_of_kernel(*config)) {
      EXPECT_EQ(result.needs.why_no_kernel, "") << op->name << ", " << config->text();
    } else if (config) {
      const auto axes = op->axes(inferred(*op, test).data(), {.gpu = target.gpu, .config = config});
      EXPECT_EQ(result.needs.tiles, i64(default_tiles(axes).size())) << op->name << ", " << config->text();
    }
    return result;
  });
}

INSTANTIATE_TEST_SUITE_P(Ops, OpConfigs, testing::ValuesIn(all_runs()), [](const auto& param) {
  const Run& run = param.param;
  return run.op->name + "_" +
         (run.executor.empty() ? "call_" + std::string(run.backend->name) : run.executor);
});

// Fails where an op forgets a value in its axes.
TEST(OpConfigAxes, FollowTheConfig) {
  constexpr TilingTarget kTargets[] = {{.gpu = false}, {.gpu = true}};
  int seen = 0;
  for (const OpSpec* op : all_ops())
    for (const TilingTarget& target : kTargets)
      for (const Case& test : op->configs ? op->cases() : std::vector<Case>{}) {
        const std::vector<std::byte> args = inferred(*op, test);
        for (const OpConfig& config : configs_of(*op, args.data(), target)) {
          const auto axes = op->axes(args.data(), {.gpu = target.gpu, .config = &config});
          for (const auto& [name, axis] : {std::pair{"rows", 0}, {"columns", 1}}) {
            if (!config.contains(name)) continue;
            EXPECT_EQ(axes[size_t(axis)].preferred, config.at(name)) << op->name << ", " << config.text();
            ++seen;
          }
        }
      }
  EXPECT_GT(seen, 100);
}

// The default is what runs where nothing is chosen.
TEST(OpConfigAxes, DefaultIsTheFirst) {
  constexpr TilingTarget kTargets[] = {{.gpu = false}, {.gpu = true}};
  for (const OpSpec* op : all_ops())
    for (const TilingTarget& target : kTargets)
      for (const Case& test : op->configs ? op->cases() : std::vector<Case>{}) {
        const std::vector<std::byte> args = inferred(*op, test);
        const std::vector<OpConfig> configs = configs_of(*op, args.data(), target);
        if (configs.empty()) continue;
        const auto none = op->axes(args.data(), target),
                   first = op->axes(args.data(), {.gpu = target.gpu, .config = &configs[0]});
        EXPECT_EQ(default_tiles(none), default_tiles(first)) << op->name << ", " << configs[0].text();
      }
}

std::string message_of(auto&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Linear linear_of(i32 rows, i32 n, i32 k) {
  Linear linear{.x = dense(DType::kBf16, {rows, k}), .y = dense(DType::kBf16, {rows, n})};
  linear.w.data = dense(DType::kBf16, {n, k});
  linear.w.panel_rows = 2, linear.w.interleave = 8;
  linear.x.buffer = linear.y.buffer = linear.w.data.buffer = 0;
  return linear;
}
const std::byte* bytes(const auto& args) {
  return reinterpret_cast<const std::byte*>(&args);
}

// linear with one configuration that reorders.
OpSpec marking_op() {
  OpSpec op = get_op("linear");
  op.configs = [](const std::byte*, const TilingTarget&) {
    return std::vector{OpConfig{{"rows", 64}}, OpConfig{{"rows", 32}}.reordering()};
  };
  return op;
}

TEST(OpConfigs, AreRefusedIfTheOpHasThemNot) {
  const OpSpec& op = get_op("linear");
  const Linear many = linear_of(300, 64, 64), few = linear_of(8, 64, 64);
  const TilingTarget gpu{.gpu = true};
  EXPECT_EQ(find_config(op, bytes(many), gpu, OpConfig::parse("stages=3,columns=64")).text(),
            "columns=64,stages=3");
  const std::string message =
      message_of([&] { find_config(op, bytes(many), gpu, OpConfig::parse("columns=65,stages=3")); });
  EXPECT_NE(message.find("[linear] has no configuration columns=65,stages=3; it has columns=64,stages=4; "),
            std::string::npos)
      << message;
  EXPECT_EQ(message_of([&] {
              find_config(op, bytes(few), gpu, OpConfig{{"rows", 64}});
            }),
            "[linear] has no configurations for such a call; rows=64 cannot be chosen");
  // The op's mark counts, whatever the caller says.
  const OpSpec marking = marking_op();
  EXPECT_TRUE(find_config(marking, bytes(few), gpu, OpConfig{{"rows", 32}}).reorders());
}

TEST(OpConfigs, AreRefusedByCalls) {
  const OpSpec& op = get_op("matmul");
  const Case test = op.cases().front();
  const OpConfig other{{"rows", 33}, {"columns", 64}};
  for (const Backend* backend : all_backends()) {
    if (!backend->op_calls || !backend->executors[0].unavailable().empty()) continue;
    const std::string message = message_of([&] { run_call(op, test, *backend, {.config = &other}); });
    EXPECT_NE(message.find("[matmul] has no configuration columns=64,rows=33; it has "), std::string::npos)
        << message;
  }
}

// The name of the code for a GPU, which is its key in caches and artefacts.
std::string key_of(const Linear& args, const OpConfig& config) {
  return cuda::code_name({"linear",
                          cuda::standalone_source(get_op("linear"), bytes(args), Knowledge::kTypes, config),
                          "sm_90a",
                          {}});
}

TEST(OpConfigs, ArePartOfTheKeyOfDeviceCode) {
  const Linear args = linear_of(300, 64, 64), other = linear_of(700, 128, 256);
  std::set<std::string> keys = {key_of(args, {})};
  const std::vector<OpConfig> configs = configs_of(get_op("linear"), bytes(args), {.gpu = true});
  for (const OpConfig& config : configs) {
    EXPECT_TRUE(keys.insert(key_of(args, config)).second) << config.text();
    EXPECT_EQ(key_of(args, config), key_of(other, config)) << config.text() << " serves all shapes";
  }
  EXPECT_EQ(keys.size(), configs.size() + 1);
}

TEST(OpConfigs, OfOpcodesAreInTheSourceOfTheirOpOnly) {
  const cuda::KernelTraits traits{.rows = kPromptStepRows};
  Opcode opcode{.ops = {"rms_norm", "linear", "add"}, .main = 1};
  const std::string plain = cuda::call_source(opcode, traits);
  EXPECT_EQ(plain.find("Config"), std::string::npos) << "the default's source has no trace of configurations";
  opcode.config = {{"columns", 64}, {"stages", 3}};
  const std::string chosen = cuda::call_source(opcode, traits);
  EXPECT_NE(chosen.find("kStages = 3;"), std::string::npos) << chosen;
  EXPECT_NE(chosen.find("Link<linear::DeviceBodyWith<ConfigLink0_1>, Linear>"), std::string::npos) << chosen;
  EXPECT_NE(chosen.find("Link<rms_norm::DeviceBody, RmsNorm>"), std::string::npos) << chosen;
}

// Programs.

EngineOptions gpu_options(const std::string& config) {
  EngineOptions options{.config = config};
  options.target = gpu_target(3);
  return options;
}

std::vector<TileCoord> tiles_of(const Program& program, const std::string& op, const OpConfig& config) {
  std::vector<TileCoord> tiles;
  for (const auto& stream : program.workers)
    for (const Instruction& instruction : stream) {
      if (instruction.opcode >= program.opcodes.size()) continue;
      const Opcode& opcode = program.opcodes[instruction.opcode];
      if (opcode.ops[opcode.main] != op || opcode.config.values() != config.values()) continue;
      TileCoord tile;
      std::copy(instruction.tile, instruction.tile + 4, tile.at);
      tiles.push_back(tile);
    }
  return tiles;
}

TEST(ProgramConfigs, AreChosenByAnOption) {
  const OpConfig config = OpConfig::parse("stages=3,columns=64");
  const Planner plain = golden_planner("llama3-tiny", gpu_options("")),
                chosen = golden_planner("llama3-tiny", gpu_options("linear:columns=64,stages=3"));
  for (const i32 rows : {1, 8, 64}) {
    EXPECT_EQ(serialise_program(plain.program(rows, 1)), serialise_program(chosen.program(rows, 1))) << rows;
    for (const Opcode& opcode : chosen.program(rows, 1).opcodes) EXPECT_TRUE(opcode.config.values().empty());
  }
  const Program program = chosen.program(512, 1);
  EXPECT_TRUE(tiles_of(plain.program(512, 1), "linear", config).empty());
  const std::vector<TileCoord> tiles = tiles_of(program, "linear", config);
  EXPECT_FALSE(tiles.empty());
  for (const TileCoord& tile : tiles) {
    EXPECT_LE(tile[3] - tile[2], 64);
  }
  EXPECT_TRUE(check(program).ok());
  // The file of the program has it, and the check knows it.
  Program again = parse_program(serialise_program(program), "again");
  EXPECT_EQ(tiles_of(again, "linear", config).size(), tiles.size());
  for (Opcode& opcode : again.opcodes)
    if (!opcode.config.values().empty()) opcode.config = {{"columns", 1}, {"stages", 1}};
  EXPECT_FALSE(check(again).ok());
}

TEST(ProgramConfigs, AreKeptByArtefacts) {
  const std::string asked = "linear:columns=64,stages=3";
  EngineOptions options = gpu_options(asked);
  const std::shared_ptr<const Model> model = open_model(load_golden("llama3-tiny").folder);
  const Artefact artefact = make_artefact(model, options, {.executor = "threads"});
  EXPECT_EQ(artefact.settings.at("config"), asked);
  EXPECT_FALSE(tiles_of(artefact.program(512, 16), "linear", OpConfig::parse("stages=3,columns=64")).empty());
  options.artefact = std::make_shared<const Artefact>(artefact);
  options.executor = "threads";
  take_settings(*model, options);
  EXPECT_EQ(options.config, asked);
  options.config = "linear:columns=128,stages=3";
  EXPECT_NE(message_of([&] { take_settings(*model, options); }).find("has config = " + asked),
            std::string::npos);
}

TEST(ProgramConfigs, AreRefusedIfNoCallHasThem) {
  const auto refusal = [](const std::string& config) {
    return message_of([&] { golden_planner("llama3-tiny", gpu_options(config)); });
  };
  EXPECT_NE(refusal("linnear:rows=64").find("linnear"), std::string::npos) << refusal("linnear:rows=64");
  EXPECT_EQ(refusal("linear"), "[engine] config has 'linear'; must be OP:NAME=VALUE,...");
  EXPECT_EQ(refusal("embedding:rows=64"), "[engine] config names embedding, which has no configurations");
  EXPECT_EQ(refusal("linear:columns=64;linear:columns=64"), "[engine] config has linear twice");
  EXPECT_NE(refusal("linear:columns=7").find("[linear] has no configuration columns=7; it has columns="),
            std::string::npos)
      << refusal("linear:columns=7");
  EXPECT_EQ(refusal("matmul:rows=64,columns=64"),
            "[engine] config names matmul, which this model's programs do not call");
}

// The CPU's threads run programs that are laid out for a GPU, which have configurations.
TEST(ProgramConfigs, AreTunedWithTheScheduler) {
  const Scratch scratch;
  ::setenv("HEDDLE_TUNED", scratch.path("tuned").c_str(), 1);
  const std::shared_ptr<const Model> model = open_model(load_golden("llama3-tiny").folder);
  const EngineOptions options = gpu_options("");
  std::vector<std::string> told;  // before the first sample, which may take a minute
  const auto best = [&] {
    const ProgressScope listens([&](const Progress& progress) {
      told.push_back(fmt::format("{} {} {}", progress.doing, progress.done, progress.what));
    });
    return tune_programs(model, options, {.prompt = 70, .answer = 2}, {.max_configs = 3});
  }();
  for (const char* const first : {"first answer: 70 tokens", "timing scheduler: 0 samples"})
    EXPECT_NE(std::ranges::find(told, first), told.end()) << first;
  std::string all;
  for (const TunedChoice& choice : best.choices)
    for (const tune::Tried& tried : choice.tried) all += choice.what + " " + tried.config + "\n";
  for (const char* const tried : {"scheduler default\n", "scheduler backward\n", "linear default\n",
                                  "linear columns=64,stages=4\n", "these-together default\n"})
    EXPECT_NE(all.find(tried), std::string::npos) << tried << "in:\n" << all;
  EXPECT_EQ(all.find("step="), std::string::npos) << "attention's reorder sums:\n" << all;
  EXPECT_GT(best.ns, 0);

  EngineOptions taken = options;
  EXPECT_EQ(take_tuned(*model, taken), best.summary());
  EXPECT_EQ(taken.scheduler, best.scheduler);
  EXPECT_EQ(taken.config, best.config);
  golden_planner("llama3-tiny", taken);
  const auto takes = [](const std::string& name, const EngineOptions& asked) {
    EngineOptions changed = asked;
    return !take_tuned(*open_model(load_golden(name).folder), changed).empty();
  };
  EXPECT_FALSE(takes("gemma3-tiny", options)) << "another model";
  EngineOptions other = options;
  other.scheduler = "zigzag";
  EXPECT_FALSE(takes("llama3-tiny", other)) << "the caller's choice";
  other = options;
  other.passes.fuse_epilogues = false;
  EXPECT_FALSE(takes("llama3-tiny", other)) << "other programs";
  other = options;
  other.max_context = 64;
  EXPECT_TRUE(takes("llama3-tiny", other)) << "the same programs, with less room";
  ::unsetenv("HEDDLE_TUNED");

  EXPECT_EQ(message_of([&] { tune_programs(model, taken, {}, {}); }),
            "[tune] tuning chooses the scheduler and the configurations; leave them out");
}

TEST(ProgramConfigs, ChangeWhileAnEngineRuns) {
  const auto engine = golden_engine("llama3-tiny", gpu_options(""));
  const std::vector<i32> tokens(100, 3);
  const auto logits = [&] {
    const SequenceId sequence = engine->open({});
    const StepRequest request{sequence, tokens, true};
    std::vector<float> values = engine->step(std::span(&request, 1)).logits;
    engine->close(sequence);
    return values;
  };
  const std::vector<float> before = logits();
  engine->plan("zigzag", "linear:columns=64,stages=3");
  const Program& program = engine->program(100, 1);
  EXPECT_FALSE(tiles_of(program, "linear", OpConfig::parse("stages=3,columns=64")).empty());
  EXPECT_EQ(logits(), before);
  EXPECT_NE(message_of([&] { engine->plan("zigzag", "linear:columns=7"); }).find("columns=7"),
            std::string::npos);
  EXPECT_EQ(&engine->program(100, 1), &program) << "a refusal changes nothing";
  engine->plan("", "");
  EXPECT_NE(&engine->program(100, 1), &program);
}

}  // namespace
}  // namespace heddle
