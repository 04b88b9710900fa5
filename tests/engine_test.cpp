// One program serves every step of its row class: prompt chunks, next tokens of several sequences, and mixes
// of both, with attention in one, two and many parts.
#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "tests/support/golden.h"

namespace heddle {
namespace {

constexpr const char* kModel = "llama2-tiny";

// The logits that each sequence alone has after its last token.
std::vector<float> alone(const EngineOptions& options, std::span<const i32> tokens) {
  auto engine = golden_engine(kModel, options);
  auto logits = logits_of(*engine, tokens, tokens.size());
  return {logits.end() - engine->info().vocab, logits.end()};
}

struct Play {
  std::unique_ptr<Engine> engine;
  std::vector<std::vector<i32>> texts;  // prompts of 9, 17 and 30 tokens
  std::vector<SequenceId> ids;

  explicit Play(EngineOptions options) : engine(golden_engine(kModel, std::move(options))) {
    const Golden golden = load_golden(kModel);
    for (auto [begin, count] : {std::pair{0, 9}, {11, 17}, {30, 30}}) {
      texts.emplace_back(golden.tokens.begin() + begin, golden.tokens.begin() + begin + count);
      ids.push_back(engine->open({}));
    }
  }
  // A request for tokens [begin, end) of text `i`.
  StepRequest part(size_t i, size_t begin, size_t end, bool wanted) const {
    return {ids[i], std::span(texts[i]).subspan(begin, end - begin), wanted};
  }
};

const EngineOptions kOptions{
    .workers = 3, .max_context = 128, .max_sequences = 4, .page_size = 16, .split_unit = 8};

TEST(Engine, MixesPromptChunksAndNextTokens) {
  for (const std::string executor : {"threads", "reference"}) {
    EngineOptions options = kOptions;
    options.executor = executor;
    Play play(options);
    // Step 1: three prompts, none to its end. Step 2: a chunk of one beside the last tokens of the others.
    std::vector<StepRequest> first = {play.part(0, 0, 8, false), play.part(1, 0, 16, false),
                                      play.part(2, 0, 20, false)};
    std::vector<StepRequest> second = {play.part(2, 20, 30, true), play.part(0, 8, 9, true),
                                       play.part(1, 16, 17, true)};
    const StepResult one = play.engine->step(first);
    EXPECT_TRUE(one.logits.empty());
    const StepResult two = play.engine->step(second);
    const size_t vocab = size_t(play.engine->info().vocab);
    ASSERT_EQ(two.logits.size(), 3 * vocab);
    EngineOptions single = options;
    single.all_logits = true;
    for (size_t r = 0; r < 3; ++r) {
      const size_t text = std::array<size_t, 3>{2, 0, 1}[r];
      EXPECT_LE(largest_difference(std::span(two.logits).subspan(r * vocab, vocab),
                                   alone(single, play.texts[text])),
                5e-5)
          << executor << " text " << text;
    }
  }
}

TEST(Engine, NextTokensOfSeveralSequencesAreOneStep) {
  Play play(kOptions);
  for (size_t i = 0; i < 3; ++i) {
    const StepRequest request = play.part(i, 0, play.texts[i].size() - 1, false);
    play.engine->step(std::span(&request, 1));
  }
  std::vector<StepRequest> last;
  for (size_t i = 0; i < 3; ++i)
    last.push_back(play.part(i, play.texts[i].size() - 1, play.texts[i].size(), true));
  const StepResult result = play.engine->step(last);
  EngineOptions single = kOptions;
  single.all_logits = true;
  const size_t vocab = size_t(play.engine->info().vocab);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_LE(
        largest_difference(std::span(result.logits).subspan(i * vocab, vocab), alone(single, play.texts[i])),
        5e-5);
  // A loop over sequences would run the program's tiles once for each of them.
  EXPECT_EQ(result.report.tiles_run + result.report.tiles_dead,
            play.engine->program(3, 3).num_instructions());
  EXPECT_EQ(result.report.steps, 1);
}

// Dead parts of attention for each key head after each of 61 tokens: parts of 8 positions, 8 at most.
std::vector<u64> dead_parts(const char* model) {
  EngineOptions options = kOptions;
  options.max_splits = 8;
  options.max_sequences = 1;
  const Golden golden = load_golden(model);
  auto engine = golden_engine(model, options);
  const SequenceId sequence = engine->open({});
  const u64 heads = u64(engine->info().kv_heads) * u64(engine->info().layers);
  std::vector<u64> dead;
  for (size_t i = 0; i < 61; ++i) {
    const StepRequest request{sequence, std::span(golden.tokens).subspan(i, 1), true};
    const u64 tiles = engine->step(std::span(&request, 1)).report.tiles_dead;
    EXPECT_EQ(tiles % heads, 0u);
    dead.push_back(tiles / heads);
  }
  return dead;
}

TEST(Engine, SplitsOfAttentionAreLiveAsTheLengthSays) {
  // Length 5 has one live part, 15 two, 60 eight of eight.
  const auto dead = dead_parts(kModel);
  EXPECT_EQ(dead[4], 7u);
  EXPECT_EQ(dead[14], 6u);
  EXPECT_EQ(dead[60], 0u);
}

TEST(Engine, WhatLiesBeforeAWindowIsInNoPart) {
  const auto dead = dead_parts("mistral-tiny");  // a window of 13 positions
  EXPECT_EQ(dead[12], 6u);                       // sees 0 to 12
  EXPECT_EQ(dead[19], 5u);                       // sees 7 to 19
  EXPECT_EQ(dead[20], 6u);                       // sees 8 to 20
  EXPECT_EQ(dead[59], 5u);                       // sees 47 to 59: parts from 40 on
  EXPECT_EQ(dead[60], 6u);
}

class EngineOf : public testing::TestWithParam<const char*> {};

TEST_P(EngineOf, SameBitsForEveryNumberOfWorkersAndThreads) {
  const Golden golden = load_golden(GetParam());
  std::vector<float> first;
  for (auto [workers, threads] : {std::pair{1, 1}, {2, 2}, {7, 2}, {40, 3}})
    for (const std::string scheduler : {"level_batched", "round_robin"}) {
      auto engine = golden_engine(GetParam(), {.scheduler = scheduler,
                                               .workers = workers,
                                               .threads = threads,
                                               .max_sequences = 1,
                                               .all_logits = true});
      const auto logits = logits_of(*engine, golden.tokens, 9);
      if (first.empty()) first = logits;
      EXPECT_EQ(first, logits) << workers << " workers, " << threads << " threads, " << scheduler;
    }
}

TEST_P(EngineOf, EveryInterleavingAndStaleReadsGiveTheSame) {
  const Golden golden = load_golden(GetParam());
  std::vector<float> first;
  for (u64 seed = 0; seed < 6; ++seed)
    for (bool adversarial : {false, true}) {
      auto engine =
          golden_engine(GetParam(), {.executor = "reference",
                                     .workers = 5,
                                     .max_sequences = 1,
                                     .all_logits = true,
                                     .run = {.seed = seed, .adversarial = adversarial, .stale_reads = true}});
      const auto logits = logits_of(*engine, std::span(golden.tokens).first(12), 4);
      if (first.empty()) first = logits;
      EXPECT_EQ(first, logits) << "seed " << seed;
    }
}

INSTANTIATE_TEST_SUITE_P(Models, EngineOf, testing::Values("llama2-tiny", "gemma2-tiny", "gemma3-tiny"),
                         [](const auto& param) { return std::string(param.param, 6); });

TEST(Engine, RefusesLengthsWithOtherFrequencies) {
  for (auto [model, positions, why] : {std::tuple{"qwen3-bf16", 256, "rope_type dynamic is served up to"},
                                       {"llama-longrope", 128, "rope_type longrope is served up to"}}) {
    EXPECT_EQ(golden_engine(model, {.max_context = positions})->max_context(), positions);
    try {
      golden_engine(model, {.max_context = positions + 1});
      ADD_FAILURE() << model << " took another position";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  }
}

TEST(Engine, RefusesWhatAStepCannotHold) {
  Play play(kOptions);
  const std::vector<i32> outside = {1, 131}, negative = {-1}, many(600, 1), past(129, 1);
  auto message = [&](const std::vector<i32>& tokens, SequenceId id) {
    const StepRequest request{id, tokens, true};
    try {
      play.engine->step(std::span(&request, 1));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(message(outside, 0).find("token 131; the vocabulary has 0 to 130"), std::string::npos);
  EXPECT_NE(message(negative, 0).find("token -1"), std::string::npos);
  EXPECT_NE(message(past, 0).find("129 positions; max_context is 128"), std::string::npos)
      << message(past, 0);
  EXPECT_NE(message({}, 0).find("no tokens"), std::string::npos);
  EXPECT_NE(message({1}, 3).find("sequence 3 is not open"), std::string::npos);
  const StepRequest twice[] = {play.part(0, 0, 1, false), play.part(0, 1, 2, false)};
  EXPECT_THROW(play.engine->step(twice), Error);
  EXPECT_EQ(play.engine->length(0), 0);  // nothing was lost
}

}  // namespace
}  // namespace heddle
