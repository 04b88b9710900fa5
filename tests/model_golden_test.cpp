// Every golden checkpoint on every executor: logits against transformers' fp32, and greedy tokens.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "heddle/ir/registry.h"
#include "heddle/ops/attention/attention.h"
#include "tests/support/golden.h"

namespace heddle {
namespace {

class ModelGolden : public testing::TestWithParam<std::string> {};

// f32 weights leave only rounding; 16-bit weights add the rounding of keys and values, as in transformers'
// bf16.
double bound_of(const Engine& engine, const Golden& golden) {
  if (engine.info().weight_dtype != DType::kF32) return 1.2 * golden.bf16_error;
  // f32 has 16 bits more than bf16, whose error says how much a model makes of one.
  return std::max(5e-5, 8 * golden.bf16_error / (1 << 16));
}

// All executors that can run on this machine. Prints those that cannot.
std::vector<std::string> executors() {
  std::vector<std::string> names;
  for (const Backend* backend : all_backends())
    for (const ExecutorSpec& executor : backend->executors)
      if (std::string why = executor.unavailable(); why.empty())
        names.push_back(executor.name);
      else
        std::printf("%s not tried: %s\n", executor.name, why.c_str());
  return names;
}

TEST_P(ModelGolden, LogitsMatchTransformers) {
  const Golden golden = load_golden(GetParam());
  for (const std::string& executor : executors()) {
    auto engine = golden_engine(GetParam(),
                                {.executor = executor, .workers = 3, .max_sequences = 1, .all_logits = true});
    // Whole, in chunks across pages, and token by token.
    for (size_t chunk : {golden.tokens.size(), size_t(13), size_t(1)}) {
      if (executor == "reference" && chunk == 1) continue;  // slow, and the same program as below
      const double error = largest_difference(logits_of(*engine, golden.tokens, chunk), golden.logits);
      EXPECT_LE(error, bound_of(*engine, golden)) << executor << ", chunks of " << chunk;
    }
  }
}

// Kernels for any sizes give the same bits as kernels made for one model.
TEST_P(ModelGolden, FormsGiveTheBitsOfSizes) {
  const Golden golden = load_golden(GetParam());
  const auto tokens = std::span(golden.tokens).first(5);
  for (const std::string executor : {"megakernel", "launches"}) {
    if (std::string why = get_executor(executor).unavailable(); !why.empty())
      GTEST_SKIP() << executor << ": " << why;
    const auto run = [&](Knowledge knowledge) {
      EngineOptions options{.executor = executor, .workers = 5, .max_sequences = 1, .all_logits = true};
      options.run.knowledge = knowledge;
      const auto engine = golden_engine(GetParam(), options);
      std::vector<float> logits = logits_of(*engine, tokens, 1);  // then of many rows
      const std::vector<float> together = logits_of(*engine, tokens, tokens.size());
      logits.insert(logits.end(), together.begin(), together.end());
      return logits;
    };
    EXPECT_EQ(run(Knowledge::kForms), run(Knowledge::kSizes)) << executor;
  }
}

// Many parts and pages: windows begin inside and after them, a prompt is longer than its window, and steps
// drop old positions.
TEST_P(ModelGolden, ShortPartsMatchTransformers) {
  const Golden golden = load_golden(GetParam());
  EngineOptions options{.workers = 3, .max_sequences = 1, .all_logits = true};
  options.page_size = 8, options.splits.unit = 8;
  auto engine = golden_engine(GetParam(), options);
  for (size_t chunk : {golden.tokens.size(), size_t(5), size_t(1)}) {
    const double error = largest_difference(logits_of(*engine, golden.tokens, chunk), golden.logits);
    EXPECT_LE(error, bound_of(*engine, golden)) << "chunks of " << chunk;
  }
}

// Pages of positions that no layer sees return to the pool, so this must be right.
TEST_P(ModelGolden, SaysTheWindowThatAllLayersHave) {
  const Planner planner = golden_planner(GetParam(), {.workers = 1});
  const ModelGraph one = planner.graph(1, 1);
  i32 widest = 0;
  for (const Node& node : one.graph.nodes())
    if (node.main_part().op == &get_op("attention")) {
      const i32 window = node.main_part().as<Attention>().window;
      widest = std::max(widest, window > 0 ? window : INT32_MAX);
    }
  EXPECT_EQ(planner.model().info().window, widest < INT32_MAX ? widest : 0);
}

TEST_P(ModelGolden, GreedyTokensMatchTransformers) {
  const Golden golden = load_golden(GetParam());
  for (const std::string& executor : executors()) {
    if (executor == "reference") continue;  // slow, and its logits were compared already
    auto engine = golden_engine(GetParam(), {.executor = executor, .workers = 2, .max_sequences = 1});
    const double noise = 2 * bound_of(*engine, golden);
    const SequenceId sequence = engine->open({});
    std::vector<i32> next = golden.prompt;
    for (size_t i = 0; i < golden.greedy.size(); ++i) {
      const StepRequest request{sequence, next, true};
      const i32 token = engine->step(std::span(&request, 1)).sampled[0];
      if (double(golden.margins[i]) <= noise) break;  // from here on the texts may differ
      ASSERT_EQ(token, golden.greedy[i]) << executor << " token " << i << ", margin " << golden.margins[i];
      next = {token};
    }
  }
}

TEST_P(ModelGolden, UnfusedGraphGivesTheSameWithinRounding) {
  const Golden golden = load_golden(GetParam());
  const EngineOptions fused{.max_sequences = 1, .all_logits = true};
  EngineOptions plain = fused;
  plain.passes = {.fuse_epilogues = false, .fuse_prologues = false};
  auto a = golden_engine(GetParam(), fused), b = golden_engine(GetParam(), plain);
  const std::span<const i32> tokens = std::span(golden.tokens).first(8);
  EXPECT_LE(largest_difference(logits_of(*a, tokens, 8), logits_of(*b, tokens, 8)), bound_of(*a, golden));
  EXPECT_LT(a->program(8, 1).calls.size(), b->program(8, 1).calls.size());
}

INSTANTIATE_TEST_SUITE_P(All, ModelGolden, testing::ValuesIn(golden_names()), [](const auto& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace heddle
