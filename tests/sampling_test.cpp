// Compares a program's choices with transformers' processors: the same token for the same draw, and over many
// seeds each token as often as its probability says.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include <gtest/gtest.h>

#include "heddle/model/build/family.h"
#include "heddle/text/logits_processors.h"
#include "tests/support/golden.h"
#include "tests/support/scratch.h"

namespace heddle {
namespace {

constexpr const char* kModel = "llama2-tiny";
constexpr i32 kTogether = 64;
constexpr u64 kDraws = 2048;

struct Drawn {
  std::vector<i32> tokens;    // by seed
  std::vector<float> logits;  // logits that the tokens were drawn from
  std::vector<i32> text;      // tokens before them
  size_t differs_from_host = 0;
};

Drawn draw(const SamplingParams& params) {
  auto engine = golden_engine(kModel, {.max_context = 64, .max_sequences = kTogether + 1, .page_size = 16});
  Drawn drawn;
  drawn.text = load_golden(kModel).tokens;
  drawn.text.resize(17);
  const SequenceId first = engine->open({});  // reads the page that all others begin with
  const StepRequest all{first, drawn.text, false};
  engine->step(std::span(&all, 1));
  for (u64 seed = 0; seed < kDraws; seed += kTogether) {
    std::vector<SequenceId> ids;
    std::vector<StepRequest> requests;
    for (u64 i = 0; i < kTogether; ++i) {
      ids.push_back(engine->open({.temperature = params.temperature,
                                  .top_p = params.top_p,
                                  .min_p = params.min_p,
                                  .repetition_penalty = params.repetition_penalty,
                                  .top_k = params.top_k,
                                  .seed = seed + i},
                                 drawn.text));
      const size_t known = size_t(engine->length(ids.back()));
      requests.push_back({ids.back(), std::span(drawn.text).subspan(known), true});
    }
    const StepResult step = engine->step(requests);
    const size_t vocab = size_t(engine->info().vocab);
    for (size_t i = 0; i < kTogether; ++i) {
      const auto logits = std::span(step.logits).subspan(i * vocab, vocab);
      if (drawn.logits.empty()) drawn.logits.assign(logits.begin(), logits.end());
      EXPECT_TRUE(std::ranges::equal(logits, drawn.logits));
      SamplingParams host = params;
      host.seed = seed + i;
      drawn.differs_from_host += choose_token(host, {.tokens = drawn.text}, logits, 0) != step.sampled[i];
    }
    drawn.tokens.insert(drawn.tokens.end(), step.sampled.begin(), step.sampled.end());
    for (SequenceId id : ids) engine->close(id);
  }
  return drawn;
}

// Pearson's statistic and its degrees of freedom. Rare tokens count as one kind.
std::pair<double, int> chi_square(const Drawn& drawn, const std::vector<float>& scores) {
  std::vector<double> found(scores.size());
  for (i32 token : drawn.tokens) ++found[size_t(token)];
  const double all = double(drawn.tokens.size()), norm = log_sum_exp(scores);
  double sum = 0, rare = 0, rare_found = 0;
  int kinds = 0;
  const auto add = [&](double wanted, double got) {
    sum += (got - wanted) * (got - wanted) / wanted;
    ++kinds;
  };
  for (size_t i = 0; i < scores.size(); ++i) {
    const double wanted = all * std::exp(double(scores[i]) - norm);
    if (wanted == 0) {
      EXPECT_EQ(found[i], 0) << "token " << i << " is not to be chosen";
    }
    if (wanted >= 5)
      add(wanted, found[i]);
    else
      rare += wanted, rare_found += found[i];
  }
  if (rare >= 1) add(rare, rare_found);
  return {sum, kinds - 1};
}

TEST(Sampling, ProgramsDrawAsTransformersDefinesIt) {
  const SamplingParams all[] = {
      {.temperature = 1},
      {.temperature = 0.7f, .top_k = 9},
      {.temperature = 1.4f, .top_p = 0.6f},
      {.temperature = 0.9f, .min_p = 0.2f},
      {.temperature = 1.1f, .top_k = 40, .top_p = 0.8f, .min_p = 0.05f, .repetition_penalty = 1.6f},
  };
  for (const SamplingParams& params : all) {
    const Drawn drawn = draw(params);
    const auto scores = process_logits(params, {.tokens = drawn.text}, drawn.logits);
    const auto [statistic, freedom] = chi_square(drawn, scores);
    ASSERT_GE(freedom, 3);
    // Wilson and Hilferty's approximation of the 99.9th percentile.
    const double part = 2.0 / (9.0 * freedom),
                 limit = freedom * std::pow(1 - part + 3.09 * std::sqrt(part), 3);
    std::printf(
        "temperature %.1f: chi-square %.1f with %d degrees of freedom, at most %.1f; %zu of %zu other than "
        "the host's\n",
        double(params.temperature), statistic, freedom, limit, drawn.differs_from_host, drawn.tokens.size());
    EXPECT_LT(statistic, limit);
    EXPECT_LE(drawn.differs_from_host, drawn.tokens.size() / 1000) << "sums round in their own ways, rarely";
  }
}

// Where scores equal to the last one of top-p would exceed it, the host keeps the lower tokens of them, as transformers
// keeps some: its sort leaves open which. A program keeps them all, so that no choice depends on an order (ops/sample).
TEST(Sampling, EqualScoresAtTheEdgeOfTopPAllStayInAProgram) {
  Scratch scratch;
  const std::string folder = scratch.link_model(load_golden(kModel).folder, "model");
  edit_tensors(folder + "/model.safetensors", [](EditableTensors& tensors) {
    EditableTensor& head = tensors.at("lm_head.weight");
    const size_t row = head.data.size() / size_t(head.shape[0]);
    for (size_t i = row; i < head.data.size(); ++i) head.data[i] = head.data[i - row];
  });
  Engine engine(open_model(folder), {.max_context = 64, .max_sequences = kTogether, .page_size = 16});
  const SamplingParams params{.temperature = 1, .top_p = 0.5f};
  const std::vector<i32> text = {5, 6, 7};
  std::set<i32> drawn;
  std::vector<float> logits;
  for (u64 seed = 0; seed < kDraws / 2; seed += kTogether) {
    std::vector<StepRequest> requests;
    std::vector<SequenceId> ids;
    for (u64 i = 0; i < kTogether; ++i) {
      ids.push_back(engine.open({.temperature = 1, .top_p = 0.5f, .seed = seed + i}));
      requests.push_back({ids.back(), text, true});
    }
    const StepResult step = engine.step(requests);
    drawn.insert(step.sampled.begin(), step.sampled.end());
    logits.assign(step.logits.begin(), step.logits.begin() + engine.info().vocab);
    for (SequenceId id : ids) engine.close(id);
  }
  ASSERT_EQ(std::ranges::min(logits), std::ranges::max(logits)) << "all scores are equal";
  const std::vector<float> kept = process_logits(params, {.tokens = text}, logits);
  const auto half = i32(logits.size() + 1) / 2;
  for (i32 token = 0; token < i32(kept.size()); ++token)
    EXPECT_EQ(std::isfinite(kept[size_t(token)]), token < half) << token;
  EXPECT_GT(*drawn.rbegin(), half) << "the program keeps tokens that the host does not";
  EXPECT_GT(drawn.size(), logits.size() * 9 / 10);
}

TEST(Sampling, GreedyIsTheFirstOfTheLargestScores) {
  const SamplingParams params{.repetition_penalty = 1.3f};
  EXPECT_EQ(draw(params).differs_from_host, 0u);
}

// Bias, penalties and bans, as the program has them and as the host has them.
struct Asked {
  SamplingParams host{.presence_penalty = 0.5f,
                      .frequency_penalty = 0.75f,
                      .min_new_tokens = 7,
                      .logit_bias = {{{3, TokenBias::kBan}, {8, 1.5f}}},
                      .begin_suppress_tokens = {8}};
  SamplingSettings program{.presence_penalty = 0.5f,
                           .frequency_penalty = 0.75f,
                           .bias = {{3, -INFINITY}, {8, 1.5f}},
                           .not_before = {{8, 1}}};
  std::vector<i32> text = load_golden(kModel).tokens, ends;
  static constexpr size_t kPrompt = 9, kMade = 24;

  // The ends are tokens that the model would choose before they may come.
  explicit Asked(float temperature = 0) {
    text.resize(kPrompt);
    host.temperature = program.temperature = temperature;
    host.seed = program.seed = 11;
    const auto unasked = golden_engine(kModel, options());
    const SequenceId id = unasked->open({});
    const StepRequest prompt{id, text, true};
    ends = {unasked->step(std::span(&prompt, 1)).sampled[0]};
    program.not_before.emplace_back(ends[0], host.min_new_tokens);
  }
  static EngineOptions options() { return {.max_context = 64, .max_sequences = 2, .page_size = 16}; }

  // Tokens of calls of so many steps, of which the host takes at most `taken`.
  std::vector<i32> made(i32 steps, i32 taken) const {
    const auto engine = golden_engine(kModel, options());
    engine->open({});  // so that the other has a slot of its own
    const SequenceId id = engine->open(program, text);
    std::vector<i32> tokens, next = text;
    while (tokens.size() < kMade) {
      const StepRequest request{id, next, true};
      i32 left = taken;
      const auto take = [&](std::span<const i32>) { return --left > 0; };
      const StepResult step = engine->step(
          std::span(&request, 1), {.steps = tokens.empty() ? 1 : steps, .logits = false, .on_tokens = take});
      tokens.insert(tokens.end(), step.tokens[0].begin(), step.tokens[0].end());
      next = {tokens.back()};
    }
    tokens.resize(kMade);
    return tokens;
  }
};

TEST(Sampling, ProgramsEditScoresAsTheHostDoes) {
  for (const float temperature : {0.0f, 0.9f}) {
    Asked asked(temperature);
    const auto engine = golden_engine(kModel, Asked::options());
    const SequenceId id = engine->open(asked.program);
    std::vector<i32> text = asked.text, next = text;
    for (u32 draw = 0; draw < Asked::kMade; ++draw) {
      const StepRequest request{id, next, true};
      const StepResult step = engine->step(std::span(&request, 1));
      const TextSoFar so_far{.tokens = text, .prompt = Asked::kPrompt, .ends = asked.ends};
      ASSERT_EQ(step.sampled[0], choose_token(asked.host, so_far, step.logits, draw)) << draw;
      next = {step.sampled[0]};
      text.push_back(next[0]);
    }
    const auto answer = std::span(text).subspan(Asked::kPrompt);
    EXPECT_GE(std::ranges::find(answer, asked.ends[0]) - answer.begin(), asked.host.min_new_tokens);
    EXPECT_TRUE(std::ranges::equal(asked.made(1, 1), answer));
    EXPECT_TRUE(std::ranges::equal(asked.made(8, 8), answer)) << "the program counts by itself";
    EXPECT_TRUE(std::ranges::equal(asked.made(8, 3), answer)) << "and the host drops what it did not take";
  }
}

TEST(Sampling, AnAnswerCountsFromItsOwnBeginning) {
  const Asked asked;
  const std::vector<i32> wanted = asked.made(1, 1);
  const auto engine = golden_engine(kModel, Asked::options());
  SamplingSettings again = asked.program;
  const auto begun = std::span(wanted).first(10);
  again.chosen = begun;
  const SequenceId id = engine->open(again);
  std::vector<i32> next = asked.text;
  next.insert(next.end(), begun.begin(), begun.end());
  for (size_t i = begun.size(); i < wanted.size(); ++i) {
    const StepRequest request{id, next, true};
    next = {engine->step(std::span(&request, 1)).sampled[0]};
    EXPECT_EQ(next[0], wanted[i]) << "what was chosen before it was opened counts";
  }
  engine->rewind(id, 0);
  engine->begin_answer(id, asked.program);
  next = asked.text;
  for (const i32 token : wanted) {
    const StepRequest request{id, next, true};
    next = {engine->step(std::span(&request, 1)).sampled[0]};
    EXPECT_EQ(next[0], token) << "a new answer counts from nothing";
  }
}

TEST(Sampling, NoTokenIsLeft) {
  const auto engine = golden_engine(kModel, Asked::options());
  SamplingSettings none;
  for (i32 token = 0; token < engine->info().vocab; ++token) none.bias.emplace_back(token, -INFINITY);
  const std::vector<i32> text = {5, 6};
  const StepRequest request{engine->open(none), text, true};
  try {
    engine->step(std::span(&request, 1));
    ADD_FAILURE() << "nothing can be chosen";
  } catch (const NotFiniteLogits& error) {
    EXPECT_NE(std::string(error.what()).find("ban every token"), std::string::npos) << error.what();
  }
  EXPECT_THROW(engine->open({.bias = {{engine->info().vocab, 1}}}), Error);
  engine->open({});  // the one that was refused took no place
}

}  // namespace
}  // namespace heddle
