// One program serves every step of its row class: prompt chunks, next tokens of several sequences, and mixes
// of both, with attention in one, two and many parts.
#include <algorithm>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/model/build/family.h"
#include "heddle/schedule/schedule.h"
#include "tests/support/golden.h"

namespace heddle {
namespace {

constexpr const char* kModel = "llama2-tiny";

// The logits of each sequence after its last token, when it runs alone.
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
    .workers = 3, .max_context = 128, .max_sequences = 4, .page_size = 16, .splits = {.unit = 8}};

TEST(Engine, MixesPromptChunksAndNextTokens) {
  for (const std::string executor : {"threads", "reference"}) {
    EngineOptions options = kOptions;
    options.executor = executor;
    Play play(options);
    // Step 1: three prompts, none to its end. Step 2: a chunk of one, together with the last tokens of the
    // others.
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

// Dead parts of attention for each key head after each of 61 tokens: of 8 parts of 8 positions.
std::vector<u64> dead_parts(const char* model) {
  EngineOptions options = kOptions;
  options.splits.most = 8, options.max_context = 64;
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

// Dead tiles in steps of this many rows.
std::vector<u64> dead_experts(const char* model, std::initializer_list<size_t> rows) {
  EngineOptions options = kOptions;
  options.splits.most = 1, options.workers = 1, options.max_sequences = 1;
  const Golden golden = load_golden(model);
  auto engine = golden_engine(model, options);
  std::vector<u64> dead;
  for (size_t count : rows) {
    const SequenceId sequence = engine->open({});
    const StepRequest request{sequence, std::span(golden.tokens).first(count), true};
    dead.push_back(engine->step(std::span(&request, 1)).report.tiles_dead);
    engine->close(sequence);
  }
  return dead;
}

// Three layers of 5 experts, of which a token takes 2. With one worker, there is a tile for each slot, in
// both of a layer's products of experts.
TEST(Engine, ExpertsThatNobodyTakesAreDead) {
  const auto dead = dead_experts("mixtral-tiny", {1, 2, 8});
  EXPECT_EQ(dead[0], 0u) << "one token has as many slots as it takes experts";
  // The program for 2 and for 8 rows is the same; eight tokens take all experts.
  EXPECT_LE(dead[1], dead[2] + 3 * 2 * 3) << "two tokens take two experts at least";
  EXPECT_GE(dead[1], dead[2] + 3 * 2 * 1) << "and four at most";
}

class EngineOf : public testing::TestWithParam<const char*> {};

TEST_P(EngineOf, SameBitsForEveryNumberOfWorkersAndThreads) {
  const Golden golden = load_golden(GetParam());
  std::vector<float> first;
  for (auto [workers, threads] : {std::pair{1, 1}, {2, 2}, {7, 2}, {40, 3}})
    for (const Scheduler* scheduler : all_schedulers()) {
      auto engine = golden_engine(GetParam(), {.scheduler = scheduler->name,
                                               .workers = workers,
                                               .threads = threads,
                                               .max_sequences = 1,
                                               .all_logits = true});
      const auto logits = logits_of(*engine, golden.tokens, 9);
      if (first.empty()) first = logits;
      EXPECT_EQ(first, logits) << workers << " workers, " << threads << " threads, " << scheduler->name;
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

INSTANTIATE_TEST_SUITE_P(Models, EngineOf,
                         testing::Values("llama2-tiny", "gemma2-tiny", "gemma3-tiny", "deepseek_v3-tiny",
                                         "mixtral-tiny", "deepseek_v2-moe"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(Engine, RefusesLengthsWithOtherFrequencies) {
  EXPECT_EQ(golden_engine("qwen3-bf16", {.max_context = 256})->max_context(), 256);
  try {
    golden_engine("qwen3-bf16", {.max_context = 257});
    ADD_FAILURE() << "took another position";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("rope_type dynamic is served up to"), std::string::npos)
        << error.what();
  }
}

TEST(Engine, ServesLongropeBeyondItsFirstLength) {
  EXPECT_EQ(golden_engine("llama-longrope", {.max_context = 129})->max_context(), 129);
}

// A model with long texts. It can hide that all its layers have a window.
class LongModel : public Model {
 public:
  LongModel(std::shared_ptr<const Model> model, bool says_window)
      : model_(std::move(model)), info_(model_->info()) {
    info_.max_positions = 2048;
    if (!says_window) info_.window = 0;
  }
  const ModelInfo& info() const override { return info_; }
  ModelGraph graph(const GraphRequest& request) const override { return model_->graph(request); }
  SourceData source(const std::string& tensor) const override { return model_->source(tensor); }
  std::string fingerprint() const override { return model_->fingerprint(); }
  void forget(const std::string& tensor) const override { model_->forget(tensor); }

 private:
  std::shared_ptr<const Model> model_;
  ModelInfo info_;
};

// A long text in steps of many sizes, a second one that begins in the same way, several tokens per call, and
// a rewind; with all logits and choices.
struct LongPlay {
  Engine engine;
  std::vector<i32> text;
  std::vector<std::vector<float>> logits;
  std::vector<i32> chosen;
  i32 shared = 0;

  explicit LongPlay(bool says_window)
      : engine(std::make_shared<LongModel>(open_model(load_golden("mistral-tiny").folder), says_window),
               {.workers = 3,
                .max_context = 2048,
                .max_sequences = 2,
                .page_size = 8,
                .splits = {.unit = 8, .most = 256}}) {
    const i32 vocab = engine.info().vocab;
    for (i32 i = 0; i < 1800; ++i) text.push_back(i32((u32(i) * 2654435761u >> 16) % u32(vocab)));
    const SequenceId one = engine.open({});
    for (size_t at = 0, turn = 0; at < text.size(); ++turn) {
      const size_t count = std::min(std::array<size_t, 4>{170, 1, 9, 64}[turn % 4], text.size() - at);
      step(one, std::span(text).subspan(at, count));
      if (turn == 5) begin_like(at);
      at += count;
    }
    const StepRequest request{one, std::span(&chosen.back(), 1), true};
    const StepResult many = engine.step(std::span(&request, 1), {.steps = 40});
    logits.push_back(many.logits);
    chosen.insert(chosen.end(), many.tokens[0].begin(), many.tokens[0].end());
    engine.rewind(one, 1833);
    EXPECT_EQ(engine.length(one), 1833);
    step(one, std::span(text).first(3));
  }
  void step(SequenceId id, std::span<const i32> tokens) {
    const StepRequest request{id, tokens, true};
    const StepResult result = engine.step(std::span(&request, 1));
    logits.push_back(result.logits);
    chosen.push_back(result.sampled[0]);
  }
  void begin_like(size_t count) {
    const auto prompt = std::span(text).first(count);
    const SequenceId id = engine.open({}, prompt);
    shared = engine.length(id);
    step(id, prompt.subspan(size_t(shared)));
    engine.close(id);
  }
};

TEST(Engine, WhatAWindowLeavesIsEnough) {
  const LongPlay all(false), seen(true);
  EXPECT_EQ(all.logits, seen.logits);
  EXPECT_EQ(all.chosen, seen.chosen);
  EXPECT_EQ(all.shared, seen.shared);
  EXPECT_GT(seen.shared, 200);
  // 13 positions seen and parts of 8 are 3 pages; each sequence has 4 more, and a step of 512 rows 64.
  EXPECT_EQ(all.engine.kv_bytes() / 512, seen.engine.kv_bytes() / (2 * (3 + 4) + 64));
}

// With a window there are fewer pages than positions, so pages that a failed step kept would be missed.
TEST(Engine, AStepThatFailsTakesNoPages) {
  bool fails = true;
  EngineOptions options{
      .executor = "reference", .workers = 3, .max_context = 2048, .max_sequences = 2, .page_size = 8};
  options.splits.unit = 8;
  options.run.tap = [&fails](const Instruction&, u32) {
    if (fails) fail(ErrorCode::kDevice, "[test] as asked");
  };
  Engine engine(std::make_shared<LongModel>(open_model(load_golden("mistral-tiny").folder), true), options);
  const std::vector<i32> tokens(500, 7);
  const SequenceId ids[] = {engine.open({}), engine.open({})};
  for (SequenceId id : ids) {
    const StepRequest request{id, tokens, true};
    try {
      engine.step(std::span(&request, 1));
      ADD_FAILURE() << "it did not fail";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDevice) << error.what();
    }
    EXPECT_EQ(engine.length(id), 0);
  }
  fails = false;
  const StepRequest request{ids[1], std::span(tokens).first(100), true};
  engine.step(std::span(&request, 1));
  EXPECT_EQ(engine.length(ids[1]), 100);
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
