// Calls that make many tokens: what they report meanwhile, and how they end, on every executor.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "tests/support/golden.h"

namespace heddle {
namespace {

constexpr const char* kModel = "llama3-tiny";
constexpr size_t kTokens = 24;
constexpr int kPatientMs = 120'000;  // limit of a wait
constexpr int kImpatientMs = 2000;   // limit in the test with a slow host

class ManyTokens : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    start(kPatientMs);
    if (engine) wanted = alone(0);
  }
  // Makes the engine, if its executor can be used, and the first sequence.
  void start(double hang_limit_ms) {
    const std::string executor = GetParam();
    const ExecutorSpec& spec = get_executor(executor);
    if (std::string why = spec.unavailable(); !why.empty()) GTEST_SKIP() << GetParam() << ": " << why;
    EngineOptions options{
        .executor = executor, .workers = 3, .max_context = 128, .max_sequences = 2, .page_size = 16};
    options.run.hang_limit_ms = hang_limit_ms;
    engine = golden_engine(kModel, options);
    first = open(0);
  }
  // Opens a sequence that has read its prompt, and returns its first token.
  std::pair<SequenceId, i32> open(size_t begin) {
    const Golden golden = load_golden(kModel);
    const SequenceId id = engine->open({.temperature = 0.8f,
                                        .seed = 11,
                                        .presence_penalty = 0.25f,
                                        .frequency_penalty = 0.5f,
                                        .bias = {{5, -INFINITY}}});
    const StepRequest request{id, std::span(golden.tokens).subspan(begin, 9), true};
    return {id, engine->step(std::span(&request, 1)).sampled[0]};
  }
  StepResult make(std::span<const StepRequest> requests, const StepOptions& options) {
    StepOptions made = options;
    made.logits = false;
    return engine->step(requests, made);
  }
  // The text of a sequence that is computed token by token.
  std::vector<i32> alone(size_t begin) {
    auto [id, token] = open(begin);
    std::vector<i32> tokens;
    while (tokens.size() < kTokens) {
      const StepRequest request{id, std::span(&token, 1), true};
      const i32 next = engine->step(std::span(&request, 1)).sampled[0];
      tokens.push_back(token = next);
    }
    engine->close(id);
    return tokens;
  }
  // The most steps of a call of 64 that is to end after `wanted_steps`. A megakernel goes on until the host's word reaches it,
  // which is a matter of time; the others begin steps only a few ahead.
  static int most_steps(int wanted_steps) {
    return std::string(GetParam()) == "megakernel" ? 64 : wanted_steps + 8;
  }
  // Checks the rest of the text after `have` tokens.
  void expect_goes_on(SequenceId id, size_t have) {
    EXPECT_EQ(engine->length(id), i32(9 + have));
    const i32 last = wanted[have - 1];
    const StepRequest request{id, std::span(&last, 1), true};
    const i32 rest = i32(kTokens - have);
    const StepResult result = make(std::span(&request, 1), {.steps = rest});
    EXPECT_EQ(result.tokens[0], std::vector<i32>(wanted.begin() + i64(have), wanted.end()));
  }

  std::unique_ptr<Engine> engine;
  std::pair<SequenceId, i32> first;
  std::vector<i32> wanted;
};

TEST_P(ManyTokens, AreToldInOrder) {
  const auto [id, token] = first;
  const StepRequest request{id, std::span(&token, 1), true};
  std::vector<i32> told;
  const StepResult result =
      make(std::span(&request, 1), {.steps = kTokens, .on_tokens = [&](auto chosen) {
                                      told.insert(told.end(), chosen.begin(), chosen.end());
                                      return true;
                                    }});
  EXPECT_EQ(told, wanted);
  EXPECT_EQ(result.tokens[0], wanted);
  EXPECT_EQ(result.report.steps, int(kTokens));
}

TEST_P(ManyTokens, EndWithTheTokenThatEnds) {
  const auto [id, token] = first;
  const i32 end[] = {9999, wanted[7]};
  const size_t at = size_t(std::ranges::find(wanted, end[1]) - wanted.begin());
  const StepRequest request{id, std::span(&token, 1), true};
  size_t told = 0;
  const StepResult result =
      make(std::span(&request, 1),
           {.steps = kTokens, .ends = end, .on_tokens = [&](auto) { return ++told, true; }});
  EXPECT_EQ(result.report.steps, int(at + 1)) << "the step behind the end is not done";
  EXPECT_EQ(told, at + 1);
  EXPECT_EQ(result.tokens[0].back(), end[1]);
  EXPECT_EQ(result.sampled[0], end[1]);
  expect_goes_on(id, at + 1);
}

// A device holds a few end tokens; the host knows all of them.
TEST_P(ManyTokens, EndWithOneOfManyTokens) {
  const auto [id, token] = first;
  std::vector<i32> ends(20, 9999);
  ends.push_back(wanted[7]);
  const size_t at = size_t(std::ranges::find(wanted, ends.back()) - wanted.begin());
  const StepRequest request{id, std::span(&token, 1), true};
  const StepResult result =
      make(std::span(&request, 1), {.steps = 64, .ends = ends, .on_tokens = [](auto) { return true; }});
  EXPECT_EQ(result.tokens[0], std::vector<i32>(wanted.begin(), wanted.begin() + i64(at) + 1));
  EXPECT_LE(result.report.steps, most_steps(int(at) + 1));
  expect_goes_on(id, at + 1);
}

TEST_P(ManyTokens, DoNotWaitForAHostThatIsSlow) {
  start(kImpatientMs);
  const auto [id, token] = first;
  const StepRequest request{id, std::span(&token, 1), true};
  std::vector<i32> told;
  const auto tell = [&](std::span<const i32> chosen) {
    if (told.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(kImpatientMs * 5 / 4));
    told.push_back(chosen[0]);
    return true;
  };
  make(std::span(&request, 1), {.steps = kTokens, .on_tokens = tell});
  EXPECT_EQ(told, wanted);
}

TEST_P(ManyTokens, EndWhenTheHostSaysSo) {
  const auto [id, token] = first;
  const StepRequest request{id, std::span(&token, 1), true};
  size_t told = 0;
  const StepResult result =
      make(std::span(&request, 1), {.steps = 64, .on_tokens = [&](auto) { return ++told < 5; }});
  EXPECT_EQ(told, 5u);
  EXPECT_EQ(result.tokens[0], std::vector<i32>(wanted.begin(), wanted.begin() + 5));
  std::printf("asked to end in step 5, it did %d\n", result.report.steps);
  EXPECT_LE(result.report.steps, most_steps(5)) << "the host is told while the steps go on";
  expect_goes_on(id, 5);
}

TEST_P(ManyTokens, EndWithWhatTheHostThrows) {
  const auto [id, token] = first;
  const StepRequest request{id, std::span(&token, 1), true};
  size_t told = 0;
  const StepOptions options{.steps = 64, .on_tokens = [&](auto) -> bool {
                              if (++told == 3) throw std::runtime_error("enough");
                              return true;
                            }};
  EXPECT_THROW(make(std::span(&request, 1), options), std::runtime_error);
  EXPECT_EQ(engine->length(id), 9);
  const StepResult again = make(std::span(&request, 1), {.steps = kTokens});
  EXPECT_EQ(again.tokens[0], wanted);
}

TEST_P(ManyTokens, OfTwoSequencesEndWithTheFirst) {
  const auto [id, token] = first;
  const auto [other, second] = open(11);
  const StepRequest requests[] = {{other, std::span(&second, 1), true}, {id, std::span(&token, 1), true}};
  std::vector<i32> told[2];
  const auto tell = [&](std::span<const i32> chosen) {
    for (size_t i = 0; i < 2; ++i) told[i].push_back(chosen[i]);
    return told[0].size() < 6;
  };
  const StepResult result = make(requests, {.steps = kTokens, .on_tokens = tell});
  EXPECT_EQ(told[1], std::vector<i32>(wanted.begin(), wanted.begin() + 6));
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(result.tokens[i], told[i]);
  EXPECT_EQ(engine->length(id), 9 + 6);
  EXPECT_EQ(engine->length(other), 9 + 6);
}

TEST_P(ManyTokens, AreNotToldWithLogits) {
  const auto [id, token] = first;
  const StepRequest request{id, std::span(&token, 1), true};
  EXPECT_THROW(engine->step(std::span(&request, 1), {.steps = 2, .on_tokens = [](auto) { return true; }}),
               Error);
}

INSTANTIATE_TEST_SUITE_P(Executors, ManyTokens,
                         testing::Values("threads", "reference", "launches", "megakernel"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace heddle
