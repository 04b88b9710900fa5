// The decode programs of full-size models for the workers of a GPU. Building and proving them needs neither
// weights nor a GPU. A small one also runs, with stale reads.
#include <cctype>
#include <map>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "heddle/engine/planner.h"
#include "heddle/ir/check/check.h"
#include "heddle/ir/program/print.h"
#include "heddle/schedule/schedule.h"
#include "tests/support/golden.h"
#include "tests/support/shapes.h"

namespace heddle {
namespace {

// Three seeds give three interleavings; the last one's is adversarial.
#ifdef HEDDLE_SANITIZED
constexpr u64 kFirstSeed = 3;
#else
constexpr u64 kFirstSeed = 1;
#endif

struct Built {
  Program program;
  Placement placement;
};

Built build(const std::shared_ptr<const Model>& model, const Target& target, i32 rows,
            const CompileOptions& options = {}) {
  const Planner planner(model, target, {.pages_per_sequence = 128, .num_pages = 128 * rows}, options);
  return {planner.program(rows, rows), planner.placement()};
}

std::map<EdgeKind, int> edges_of(const Program& program) {
  std::map<EdgeKind, int> count;
  for (const auto& stream : program.workers)
    for (const Instruction& instruction : stream)
      for (int i = 0; i < kMaxWaits; ++i)
        if (instruction.waits[i].counter != kNoCounter) ++count[instruction.wait_kind(i)];
  return count;
}

// Limits of the proof's work per instruction: clocks joined or compared, and cells examined. bench/rows.py
// measures its time. Tiles of a mixture may write to any row that experts share, so they have many cells.
struct Limits {
  double clocks = 0, cells = 0;
};
// a tenth more than when this was written
constexpr Limits kDense = {20, 61}, kMixture = {432, 988}, kManyRows = {1076, 6571};

void expect_proved(const Program& program, const Limits& most, const std::string& what) {
  const CheckReport report = check(program);
  for (const Fault& fault : report.faults)
    ADD_FAILURE() << what << ": " << heddle::name(fault.kind) << ": " << fault.message;
  const double clocks = double(report.work.clocks) / double(report.instructions);
  const double cells = double(report.work.cells) / double(report.instructions);
  fmt::print("{}: {} instructions, each with {:.2f} clocks and {:.2f} cells\n", what, report.instructions,
             clocks, cells);
  EXPECT_LE(clocks, most.clocks) << what;
  EXPECT_LE(cells, most.cells) << what;
}

struct Shape {
  const char* name;
  const char* config;
  i32 workers;
  Limits most = kDense;
};

class DecodePrograms : public testing::TestWithParam<Shape> {};

TEST_P(DecodePrograms, AreBuiltAndProved) {
  const auto& [name, config, workers, most] = GetParam();
  const Built built = build(std::make_shared<Shapes>(config), gpu_target(workers), 1);
  expect_proved(built.program, most, fmt::format("{}, {} workers", name, workers));
  auto edges = edges_of(built.program);
  EXPECT_GT(edges[EdgeKind::kInSm], 0);
  EXPECT_GT(edges[EdgeKind::kCounted], 0);
  EXPECT_LE(built.placement.imbalance, 0.02);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, DecodePrograms,
    testing::Values(Shape{"Llama-3.2-1B", kLlama1B, 132}, Shape{"Llama-3.2-1B", kLlama1B, 120},
                    Shape{"Llama-3.1-8B", kLlama8B, 132}, Shape{"Llama-3.1-8B", kLlama8B, 120},
                    Shape{"Qwen3-8B", kQwen8B, 132}, Shape{"Gemma-2-2B", kGemma2B, 132},
                    Shape{"DeepSeek-V2-Lite", kDeepseekLite, 132},
                    Shape{"DeepSeek-V2-Lite", kDeepseekLite, 120}, Shape{"DeepSeek-V3", kDeepseekV3, 132},
                    Shape{"Qwen3-30B-A3B", kQwen30B, 132, kMixture},
                    Shape{"Qwen3-30B-A3B", kQwen30B, 120, kMixture},
                    Shape{"Mixtral-8x7B", kMixtral, 132, kMixture}),
    [](const auto& test) {
      std::string name = fmt::format("{} on {}", test.param.name, test.param.workers);
      std::erase_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
      return name;
    });

// Each tile of attention may write to any row of its heads.
TEST(PrefillPrograms, OfManyRowsAreProvedWithLittleWork) {
#ifdef HEDDLE_SANITIZED
  GTEST_SKIP()
      << "a minute of the checker, which smaller programs run too: left to builds without a sanitizer";
#endif
  std::string config = kLlama8B;
  config.replace(config.find("\"num_hidden_layers\": 32"), 23, "\"num_hidden_layers\": 4");
  const Planner planner(std::make_shared<Shapes>(config.c_str()), gpu_target(132),
                        {.pages_per_sequence = 128, .num_pages = 1024}, {});
  expect_proved(planner.program(2048, 256), kManyRows, "2,048 rows of 256 sequences");
}

TEST(DecodePrograms, OfEverySchedulerAreProvedWithLittleWork) {
  const auto model = std::make_shared<Shapes>(kLlama8B);
  for (const Scheduler* scheduler : all_schedulers())
    expect_proved(build(model, gpu_target(132), 1, {.scheduler = scheduler->name}).program, kDense,
                  scheduler->name);
}

// Laid out for a GPU's workers, with homes, resident rows and both kinds of edges. Values travel in f32, so
// that sums match the golden.
EngineOptions device_options(i32 workers, const std::string& executor) {
  EngineOptions options{.executor = executor,
                        .max_context = 96,
                        .max_sequences = 4,
                        .page_size = 16,
                        .splits = {.unit = 8},
                        .all_logits = true};
  options.target = gpu_target(workers);
  options.target->narrow_travel = false;
  return options;
}

TEST(DevicePrograms, RunWithStaleReads) {
  for (const std::string name : {"llama2-tiny", "gpt2-tiny", "gemma2-tiny", "gemma3-tiny", "deepseek_v2-tiny",
                                 "deepseek_v3-tiny", "mixtral-tiny", "qwen3_moe-tiny", "deepseek_v3-moe"}) {
    const Golden golden = load_golden(name);
    const auto tokens = std::span(golden.tokens).first(20);
    for (const i32 workers : {7, 12})
      for (u64 seed = kFirstSeed; seed <= 3; ++seed)
        for (size_t chunk : {1, 7, 20}) {
          EngineOptions options = device_options(workers, "reference");
          options.run = {.seed = seed, .adversarial = seed == 3, .stale_reads = true};
          const auto engine = golden_engine(name, options);
          const auto logits = logits_of(*engine, tokens, chunk);
          EXPECT_LE(largest_difference(logits, std::span(golden.logits).first(logits.size())), 5e-5)
              << name << ", " << workers << " workers, seed " << seed << ", chunks of " << chunk;
        }
  }
}

TEST(DevicePrograms, RunOnThreads) {
  const Golden golden = load_golden("llama3-tiny");
  EngineOptions options = device_options(132, "threads");
  const auto all_f32 = logits_of(*golden_engine("llama3-tiny", options), golden.tokens, 1);
  options.target->narrow_travel = true;
  const auto bf16 = logits_of(*golden_engine("llama3-tiny", options), golden.tokens, 1);
  const auto expected = std::span(golden.logits).first(all_f32.size());
  EXPECT_LE(largest_difference(all_f32, expected), golden.bf16_error);
  EXPECT_LE(largest_difference(bf16, expected), 2 * golden.bf16_error);
}

// Vectors share memory: the rounded copy of a sum may use the bytes of an input.
TEST(DevicePrograms, RunInSharedMemory) {
  for (const std::string name :
       {"llama2-tiny", "gemma2-tiny", "gemma3-tiny", "deepseek_v3-tiny", "qwen3_moe-tiny"})
    for (bool fuse : {true, false}) {
      const Golden golden = load_golden(name);
      EngineOptions options = device_options(12, "threads");
      options.passes.fuse_epilogues = fuse;
      const auto logits = logits_of(*golden_engine(name, options), golden.tokens, 1);
      EXPECT_LE(largest_difference(logits, golden.logits), 5e-5) << name << (fuse ? "" : ", not fused");
    }
}

// Every wait of such a program is needed: without it, the check refuses the program. (An in-SM wait only
// repeats the order of its stream.)
TEST(DevicePrograms, EveryWaitIsNeeded) {
  auto engine = golden_engine("llama2-tiny", device_options(20, "reference"));
  Program program = engine->program(1, 1);
  int dropped = 0, missed = 0;
  for (auto& stream : program.workers)
    for (Instruction& instruction : stream)
      for (int i = 0; i < kMaxWaits; ++i) {
        if (instruction.waits[i].counter == kNoCounter || instruction.wait_kind(i) == EdgeKind::kInSm)
          continue;
        const Wait wait = std::exchange(instruction.waits[i], Wait{});
        ++dropped;
        if (check(program).ok()) {
          ++missed;
          instruction.waits[i] = wait;
          ADD_FAILURE() << program.describe(instruction) << " does not need its "
                        << heddle::name(instruction.wait_kind(i)) << " wait for counter " << wait.counter;
        }
        instruction.waits[i] = wait;
      }
  EXPECT_GT(dropped, 200);
  fmt::print("{} waits dropped, {} not missed\n", dropped, missed);
}

}  // namespace
}  // namespace heddle
