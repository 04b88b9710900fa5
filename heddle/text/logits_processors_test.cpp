// Compares with transformers' processors on the cases of scripts/goldens/make_sampling.py, or of the file
// that HEDDLE_SAMPLING_CASES names.
#include "heddle/text/logits_processors.h"

#include <cmath>
#include <cstdlib>
#include <sstream>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/json_to.h"

namespace heddle {
namespace {

std::vector<Json> cases() {
  const char* other = std::getenv("HEDDLE_SAMPLING_CASES");
  std::istringstream text(read_file(other ? other : HEDDLE_SOURCE_DIR "/tests/goldens/sampling/cases.jsonl"));
  std::vector<Json> made;
  for (std::string line; std::getline(text, line);) made.push_back(parse_json(line, "cases"));
  return made;
}

template <class T>
void take(const Json& settings, const char* name, T& field) {
  if (const Json* value = settings.find(name)) field = json_to<T>(*value);
}

SamplingParams params_of(const Json& settings) {
  SamplingParams params;
  SamplingParams::visit(
      params, [&](const char* name, auto& field, const SettingHelp&) { take(settings, name, field); });
  for (const auto& [name, list] : {std::pair{"suppress_tokens", &params.suppress_tokens},
                                   {"begin_suppress_tokens", &params.begin_suppress_tokens},
                                   {"forced_eos_token_id", &params.forced_eos_token_id}})
    take(settings, name, *list);
  take(settings, "bad_words_ids", params.bad_words_ids);
  if (const Json* biases = settings.find("sequence_bias"))
    for (const Json& bias : biases->items())
      params.sequence_bias.push_back(
          {json_to<std::vector<int32_t>>(bias.items()[0]), json_to<float>(bias.items()[1])});
  return params;
}

TEST(LogitsProcessors, GiveTheScoresOfTransformers) {
  const std::vector<Json> all = cases();
  ASSERT_GE(all.size(), 100u);
  size_t number = 0;
  std::map<std::string, size_t> uses;
  for (const Json& one : all) {
    SCOPED_TRACE("case " + std::to_string(++number) + ": " + one.at("settings").dump());
    for (const JsonMember& setting : one.at("settings").members()) ++uses[setting.name];
    std::vector<float> logits;
    for (const int unit : json_to<std::vector<int>>(one.at("logits"))) logits.push_back(float(unit) / 4096);
    const auto tokens = json_to<std::vector<int32_t>>(one.at("tokens"));
    const auto ends = json_to<std::vector<int32_t>>(one.at("ends"));
    const TextSoFar text{.tokens = tokens,
                         .prompt = json_to<size_t>(one.at("prompt")),
                         .ends = ends,
                         .most = json_to<size_t>(one.at("most"))};
    const std::vector<float> scores = process_logits(params_of(one.at("settings")), text, logits);
    std::vector<size_t> kept;
    for (size_t i = 0; i < scores.size(); ++i)
      if (scores[i] > -INFINITY) kept.push_back(i);
    ASSERT_EQ(kept, json_to<std::vector<size_t>>(one.at("kept")));
    const auto wanted_scores = json_to<std::vector<double>>(one.at("scores"));
    for (size_t i = 0; i < kept.size(); ++i) {
      const double wanted = wanted_scores[i];
      ASSERT_NEAR(double(scores[kept[i]]), wanted, 1e-6 * (1 + std::abs(wanted)));
    }
  }
  EXPECT_EQ(uses.size(), 22u);
  for (const auto& [name, count] : uses) EXPECT_GE(count, all.size() / 30) << name;
}

TEST(LogitsProcessors, ChooseByTheProcessedScores) {
  const std::vector<float> logits = {1, 3, 2, 3};
  EXPECT_EQ(choose_token({}, {}, logits, 0), 1) << "the first of equals";
  EXPECT_EQ(choose_token({.bad_words_ids = {{1}}}, {}, logits, 0), 3);
  EXPECT_EQ(choose_token({.sequence_bias = {{{2}, 5}}}, {}, logits, 0), 2);
  const std::vector<int32_t> text = {0, 1, 0};
  EXPECT_EQ(choose_token({.no_repeat_ngram_size = 2}, {.tokens = text}, logits, 0), 3) << "0 1 was there";
  EXPECT_EQ(choose_token({.bad_words_ids = {{1, 0, 3}, {0, 1}}}, {.tokens = text}, logits, 0), 2);
  try {
    choose_token({.bad_words_ids = {{0}, {1}, {2}, {3}}}, {}, logits, 0);
    ADD_FAILURE() << "nothing is left";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no token is left"), std::string::npos);
  }
}

// The formula of OpenAI's documents: each logit loses count * frequency_penalty, and presence_penalty once.
TEST(LogitsProcessors, PenaltiesCountTheAnswersTokensOnly) {
  const std::vector<float> logits = {1, -2, 3, 4, 0.5f};
  const std::vector<int32_t> text = {0, 1, 2, 3, 2, 2, 1};  // the answer begins with the fourth token
  const auto scores = process_logits({.repetition_penalty = 2,
                                      .presence_penalty = 0.75f,
                                      .frequency_penalty = -1.25f,
                                      .logit_bias = {{{0, 3}, {2, -100}, {3, -99}}}},
                                     {.tokens = text, .prompt = 3}, logits);
  EXPECT_EQ(scores[0], (1 + 3) / 2.0f) << "the prompt's token is repeated, but not of the answer";
  EXPECT_EQ(scores[1], -2 * 2 + 1.25f - 0.75f);
  EXPECT_EQ(scores[2], -INFINITY) << "-100 bans";
  EXPECT_EQ(scores[3], (4.0f - 99) * 2 + 1.25f - 0.75f);
  EXPECT_EQ(scores[4], 0.5f);
}

// As many of equal scores stay as in transformers.
TEST(LogitsProcessors, TopPDividesEqualScores) {
  const std::vector<float> logits = {2, 1, 1, 1, 1, 0};
  const auto kept = [&](float top_p) {
    std::vector<int> tokens;
    const auto scores = process_logits({.temperature = 1, .top_p = top_p}, {}, logits);
    for (size_t i = 0; i < scores.size(); ++i)
      if (scores[i] > -INFINITY) tokens.push_back(int(i));
    return tokens;
  };
  // The probabilities are 0.383, four times 0.141 and 0.052.
  EXPECT_EQ(kept(0.3f), (std::vector<int>{0}));
  EXPECT_EQ(kept(0.5f), (std::vector<int>{0, 1}));
  EXPECT_EQ(kept(0.6f), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(kept(0.9f), (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(LogitsProcessors, DrawAsOftenAsTheScoresSay) {
  const std::vector<float> logits = {0, 1, 2, -1, 0.5f, -30};
  const SamplingParams params{.temperature = 0.8f, .typical_p = 0.9f, .seed = 3};
  const std::vector<float> scores = process_logits(params, {}, logits);
  const double norm = log_sum_exp(scores);
  constexpr uint32_t kDraws = 20000;
  std::vector<double> found(logits.size());
  for (uint32_t draw = 0; draw < kDraws; ++draw) ++found[size_t(choose_token(params, {}, logits, draw))];
  double chi_square = 0;
  size_t kinds = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double wanted = kDraws * std::exp(double(scores[i]) - norm);
    if (wanted == 0) {
      EXPECT_EQ(found[i], 0);
      continue;
    }
    chi_square += (found[i] - wanted) * (found[i] - wanted) / wanted;
    ++kinds;
  }
  EXPECT_EQ(kinds, 3u);
  EXPECT_LT(chi_square, 13.8);  // 2 degrees of freedom, p = 0.001; the seed is fixed
}

}  // namespace
}  // namespace heddle
