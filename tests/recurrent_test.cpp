// Models whose layers keep a state of each sequence besides its pages: any cut of a text gives the same bits, sequences do not
// touch each other's states, and what cannot be rewound is computed again.
#include <algorithm>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "heddle/engine/batcher.h"
#include "heddle/ir/registry.h"
#include "tests/support/golden.h"

namespace heddle {
namespace {

class Recurrent : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  void SetUp() override {
    if (const std::string why = get_executor(executor).unavailable(); !why.empty())
      GTEST_SKIP() << executor << ": " << why;
  }
  std::unique_ptr<Engine> engine(EngineOptions options = {}) const {
    options.workers = 3, options.page_size = 16;
    if (options.executor != "reference") options.executor = executor;
    return golden_engine(model, options);
  }
  // The largest difference of logits whose sums have another order.
  double noise() const { return model.ends_with("bf16") ? golden.bf16_error : 1e-4; }

  const std::string model = std::get<0>(GetParam()), executor = std::get<1>(GetParam());
  const Golden golden = load_golden(model);
};

StepResult step(Engine& engine, SequenceId id, std::span<const i32> tokens, const StepOptions& options = {}) {
  const StepRequest request{id, tokens, true};
  return engine.step(std::span(&request, 1), options);
}

// Steps of one class of rows round alike, and all are near.
TEST_P(Recurrent, EveryCutGivesTheSame) {
  const auto whole = engine({.max_sequences = 1, .all_logits = true});
  const auto logits = [&](size_t chunk) { return logits_of(*whole, golden.tokens, chunk); };
  const auto wanted = logits(golden.tokens.size()), few = logits(7);
  for (const size_t chunk : {40, 20, 16}) EXPECT_EQ(logits(chunk), wanted) << chunk;
  EXPECT_EQ(logits(5), few);
  EXPECT_LE(largest_difference(few, wanted), noise());
  EXPECT_LE(largest_difference(logits(1), wanted), noise());
}

// A sequence closes and another takes its slot, while a third is halfway through its text.
TEST_P(Recurrent, SequencesHaveStatesOfTheirOwn) {
  const auto all = engine({.max_sequences = 3});
  const std::span<const i32> tokens = golden.tokens;
  const auto alone = [&](std::span<const i32> text) {
    const SequenceId id = all->open({});
    const auto logits = step(*all, id, text).logits;
    all->close(id);
    return logits;
  };
  const std::vector<float> first = alone(tokens.first(20)), second = alone(tokens.subspan(5, 33));
  const SequenceId a = all->open({}), b = all->open({});
  step(*all, a, tokens.first(11));
  const StepRequest both[] = {{a, tokens.subspan(11, 9), true}, {b, tokens.subspan(5, 12), false}};
  EXPECT_EQ(all->step(both).logits, first);
  all->close(a);
  const SequenceId c = all->open({});
  const StepRequest others[] = {{b, tokens.subspan(17, 21), true}, {c, tokens.first(20), true}};
  std::vector<float> logits = all->step(others).logits;
  EXPECT_EQ(std::vector(logits.begin(), logits.begin() + i64(logits.size() / 2)), second);
  EXPECT_EQ(std::vector(logits.begin() + i64(logits.size() / 2), logits.end()), first);
}

TEST_P(Recurrent, WhatIsRewoundIsComputedAgain) {
  const auto one = engine({.max_sequences = 2});
  const std::span<const i32> tokens = golden.tokens;
  const SequenceId id = one->open({});
  const auto wanted = step(*one, id, tokens.first(40)).logits;
  one->rewind(id, 40);
  EXPECT_EQ(one->length(id), 40);
  one->rewind(id, 39);
  EXPECT_EQ(one->length(id), 0);
  EXPECT_EQ(one->known(tokens), 0) << "pages without their states";
  const SequenceId other = one->open({}, tokens);
  EXPECT_EQ(one->length(other), 0);
  EXPECT_EQ(step(*one, other, tokens.first(40)).logits, wanted);
  EXPECT_EQ(step(*one, id, tokens.first(40)).logits, wanted);
}

TEST_P(Recurrent, AStepThatFailsLeavesNoTornState) {
  bool fails = false;
  EngineOptions options{.executor = "reference", .max_sequences = 1};
  options.run.tap = [&fails](const Instruction&, u32) {
    if (fails) fail(ErrorCode::kDevice, "[test] as asked");
  };
  const auto one = engine(options);
  const std::span<const i32> tokens = golden.tokens;
  const SequenceId id = one->open({});
  const auto wanted = step(*one, id, tokens.first(8)).logits;
  fails = true;
  EXPECT_THROW(step(*one, id, tokens.subspan(8, 3)), Error);
  fails = false;
  EXPECT_EQ(one->length(id), 0);
  EXPECT_EQ(step(*one, id, tokens.first(8)).logits, wanted);
}

// Takes what a batch of jobs says.
class Job : public BatchJob {
 public:
  Job(std::span<const i32> prompt, i32 most) : prompt_(prompt.begin(), prompt.end()), most_(most) {}
  std::span<const i32> prompt() const override { return prompt_; }
  SamplingSettings sampling() const override { return {}; }
  bool take(i32 token) override { return tokens.push_back(token), left() > 0; }
  i32 left() const override { return most_ - i32(tokens.size()); }
  void end(bool) override {}

  std::vector<i32> tokens;

 private:
  std::vector<i32> prompt_;
  i32 most_;
};

// Too few pages for all: some are put off, and computed again.
TEST_P(Recurrent, JobsSayWhatEachSaysAlone) {
  const std::span<const i32> tokens = golden.tokens;
  const auto say = [&](Batcher& batcher, std::initializer_list<size_t> lengths) {
    std::vector<std::shared_ptr<Job>> jobs;
    for (const size_t length : lengths) {
      jobs.push_back(std::make_shared<Job>(tokens.first(length), 30));
      batcher.add(jobs.back());
    }
    while (!batcher.idle()) batcher.step();
    std::vector<std::vector<i32>> said;
    for (const auto& job : jobs) said.push_back(job->tokens);
    return said;
  };
  const auto all = engine({.max_context = 128, .max_sequences = 3, .kv_pages = 36});
  std::vector<std::vector<i32>> alone;
  for (const size_t length : {40, 41, 17}) {
    Batcher batcher(*all);
    alone.push_back(say(batcher, {length}).front());
  }
  Batcher batcher(*all);
  EXPECT_EQ(say(batcher, {40, 41, 17}), alone);
  EXPECT_EQ(batcher.stats().shared_tokens, 0u);
}

TEST_P(Recurrent, GoesOnAfterTheHostEndedALaunch) {
  const auto one = engine({.max_context = 128, .max_sequences = 1});
  const SequenceId id = one->open({});
  std::vector<i32> wanted = step(*one, id, golden.prompt).sampled;
  while (wanted.size() < 20) {
    const i32 last = wanted.back();
    wanted.push_back(step(*one, id, std::span(&last, 1)).sampled[0]);
  }
  one->close(id);
  const SequenceId again = one->open({});
  std::vector<i32> tokens = step(*one, again, golden.prompt).sampled;
  while (tokens.size() < 20) {
    const i32 last = tokens.back();
    const size_t most = tokens.size() + 3;
    const auto take = [&](std::span<const i32> chosen) {
      return tokens.push_back(chosen[0]), tokens.size() < most;
    };
    step(*one, again, std::span(&last, 1), {.steps = 20, .logits = false, .on_tokens = take});
    ASSERT_EQ(one->length(again), i32(golden.prompt.size() + tokens.size()) - 1);
  }
  tokens.resize(20);
  EXPECT_EQ(tokens, wanted);
}

INSTANTIATE_TEST_SUITE_P(Models, Recurrent,
                         testing::Combine(testing::Values("qwen3_next-tiny", "qwen3_5-tiny", "qwen3_5-bf16",
                                                          "qwen3_5_moe-tiny", "lfm2-tiny", "lfm2_moe-tiny",
                                                          "granitemoehybrid-mamba", "bamba-tiny",
                                                          "nemotron_h-tiny", "falcon_h1-tiny"),
                                          testing::Values("threads", "launches", "megakernel")),
                         [](const auto& param) {
                           std::string name =
                               std::string(std::get<0>(param.param)) + "_" + std::get<1>(param.param);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace heddle
