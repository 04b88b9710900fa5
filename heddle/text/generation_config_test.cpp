#include "heddle/text/generation_config.h"

#include <limits>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "heddle/base/error.h"

namespace heddle {
namespace {

GenerationConfig parse(const std::string& json) {
  return GenerationConfig::parse(json, "generation_config.json");
}

std::string refusal_of(const std::string& json) {
  try {
    parse(json);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(GenerationConfig, ReadsWhatLlamaWrites) {
  const GenerationConfig config = parse(R"({
    "_from_model_config": true, "bos_token_id": 128000, "do_sample": true, "eos_token_id": [128001, 128009],
    "temperature": 0.6, "top_p": 0.9, "max_length": 4096, "stop_strings": ["###", "\n\n"],
    "transformers_version": "5.0.0", "use_cache": true, "num_beams": 1, "min_length": null})");
  EXPECT_EQ(config.eos_token_ids, (std::vector<int32_t>{128001, 128009}));
  EXPECT_EQ(config.bos_token_id, 128000);
  EXPECT_EQ(config.pad_token_id, std::nullopt);
  EXPECT_FLOAT_EQ(config.sampling.temperature, 0.6f);
  EXPECT_FLOAT_EQ(config.sampling.top_p, 0.9f);
  EXPECT_EQ(config.sampling.top_k, 50);
  EXPECT_EQ(config.max_length, 4096);
  EXPECT_EQ(config.max_new_tokens, std::nullopt);
  EXPECT_EQ(config.stop_strings, (std::vector<std::string>{"###", "\n\n"}));
}

TEST(GenerationConfig, IsGreedyUnlessTheFileSamples) {
  const GenerationConfig config = parse(
      R"({"eos_token_id": 2, "temperature": 0.6, "top_k": 5, "repetition_penalty": 1.5, "stop_strings": "x"})");
  EXPECT_TRUE(config.sampling.greedy());
  EXPECT_EQ(config.sampling.top_k, 0);
  EXPECT_FLOAT_EQ(config.sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(config.eos_token_ids, (std::vector<int32_t>{2}));
  EXPECT_EQ(config.stop_strings, (std::vector<std::string>{"x"}));
  EXPECT_TRUE(parse("{}").eos_token_ids.empty());
}

TEST(GenerationConfig, ReadsListsOfTokens) {
  const GenerationConfig config = parse(R"({
    "bad_words_ids": [[3, 4], [5]], "sequence_bias": [[[7], 9], [[1, 2], -2.5], [[7], 1]], "no_repeat_ngram_size": 3,
    "typical_p": 0.5})");
  EXPECT_EQ(config.sampling.bad_words_ids, (std::vector<std::vector<int32_t>>{{3, 4}, {5}}));
  ASSERT_EQ(config.sampling.sequence_bias.size(), 2u);
  EXPECT_EQ(config.sampling.sequence_bias[0].tokens, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(config.sampling.sequence_bias[0].bias, -2.5f);
  EXPECT_EQ(config.sampling.sequence_bias[1].bias, 1.0f);
  EXPECT_EQ(config.sampling.needs_host(), "sequence_bias, bad_words_ids, no_repeat_ngram_size");
  EXPECT_EQ(config.sampling.typical_p, 1) << "the file does not sample";
  EXPECT_EQ(parse(R"({"do_sample": true, "typical_p": 0.5})").sampling.needs_host(), "typical_p");
}

TEST(GenerationConfig, ReadsWhatTransformersProcessesLogitsWith) {
  const GenerationConfig config = parse(R"({
    "suppress_tokens": [1, 2], "begin_suppress_tokens": [3], "min_new_tokens": 4, "min_length": 5,
    "forced_eos_token_id": 6, "forced_bos_token_id": 7, "exponential_decay_length_penalty": [8, 1.5],
    "encoder_repetition_penalty": 1.25, "encoder_no_repeat_ngram_size": 2, "epsilon_cutoff": 0.5})");
  const SamplingParams& sampling = config.sampling;
  EXPECT_EQ(sampling.suppress_tokens, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(sampling.begin_suppress_tokens, (std::vector<int32_t>{3}));
  EXPECT_EQ(sampling.forced_eos_token_id, (std::vector<int32_t>{6}));
  EXPECT_EQ(sampling.min_new_tokens, 4);
  EXPECT_EQ(sampling.min_length, 5);
  EXPECT_EQ(sampling.forced_bos_token_id, 7);
  EXPECT_EQ(sampling.exponential_decay_start, 8);
  EXPECT_EQ(sampling.exponential_decay_factor, 1.5f);
  EXPECT_EQ(sampling.epsilon_cutoff, 0) << "the file does not sample";
  EXPECT_EQ(parse(R"({"do_sample": true, "epsilon_cutoff": 0.5, "eta_cutoff": 0.25, "top_h": 0.75})")
                .sampling.needs_host(),
            "top_h, epsilon_cutoff, eta_cutoff");
}

// The cases and answers are those of transformers' GenerationConfig.from_model_config.
TEST(GenerationConfig, ReadsAModelsConfigAsTransformersDoes) {
  const std::pair<const char*, std::vector<int32_t>> cases[] = {
      {R"({"eos_token_id": 3})", {3}},
      {R"({"eos_token_id": [3, 4]})", {3, 4}},
      {R"({"eos_token_id": null})", {}},
      {R"({})", {}},
      {R"({"eos_token_id": 3, "text_config": {"eos_token_id": 7}})", {3}},
      {R"({"eos_token_id": null, "text_config": {"eos_token_id": 7}})", {7}},
      {R"({"text_config": {"eos_token_id": [7, 8]}})", {7, 8}},
      {R"({"decoder": {"eos_token_id": 1}, "text_config": {"eos_token_id": 7}})", {1}},
      {R"({"decoder": {}, "text_config": {"eos_token_id": 7}})", {7}},
      {R"({"text_config": {"eos_token_id": null}})", {}}};
  for (const auto& [json, ids] : cases)
    EXPECT_EQ(GenerationConfig::parse_model_config(json, "config.json").eos_token_ids, ids) << json;
  const GenerationConfig config = GenerationConfig::parse_model_config(
      R"({"model_type": "x", "do_sample": true, "temperature": 0.5, "text_config": {"top_p": 0.25, "temperature": 2}})",
      "model/config.json");
  EXPECT_EQ(config.sampling.temperature, 0.5f);
  EXPECT_EQ(config.sampling.top_p, 0.25f);
  std::string sources;
  for (const auto& [name, value, where] : config.sources)
    sources += fmt::format("{} {} {}\n", name, value, where);
  EXPECT_EQ(sources,
            "do_sample true config.json\ntemperature 0.5 config.json\ntop_p 0.25 config.json: text_config\n");
}

TEST(GenerationConfig, NamesWhatItRefuses) {
  EXPECT_EQ(refusal_of(R"({"num_beams": 4})"),
            "[generation_config.json] num_beams is 4: this is not supported; set it to 1, delete the line, "
            "or pass --ignore-generation num_beams");
  EXPECT_EQ(GenerationConfig::parse(R"({"num_beams": 4, "top_k": 3})", "f", {"num_beams"}).sources.size(),
            2u);
  for (const std::string line : {R"("bad_words_ids": [1])",
                                 R"("bad_words_ids": [[]])",
                                 R"("sequence_bias": [[[1]]])",
                                 R"("sequence_bias": [[[1], "x"]])",
                                 R"("force_words_ids": [[1]])",
                                 R"("suppress_tokens": ["a"])",
                                 R"("max_time": 5)",
                                 R"("penalty_alpha": 0.6)",
                                 R"("use_mtp": true)",
                                 R"("exponential_decay_length_penalty": [1])",
                                 R"("eos_token_id": "two")",
                                 R"("do_sample": 1)",
                                 R"("do_sample": true, "top_p": -0.5)",
                                 R"("do_sample": true, "min_p": -0.5)",
                                 R"("forced_eos_token_id": -1)",
                                 R"("repetition_penalty": 0)",
                                 R"("max_length": 1e3)",
                                 R"("stop_strings": [1])",
                                 R"("token_healing": true)",
                                 R"("do_sample": true, "temperature": "hot")"}) {
    EXPECT_TRUE(refusal_of("{" + line + "}").starts_with("[generation_config.json] "))
        << line << refusal_of("{" + line + "}");
  }
  EXPECT_NE(refusal_of("{\"a\": 1"), "no error");
  EXPECT_NE(refusal_of("[]"), "no error");
  EXPECT_EQ(refusal_of(R"({"suppress_tokens": [], "token_healing": false})"), "no error");
}

// transformers 5.23 generates with each of these as without it.
TEST(GenerationConfig, TakesWhatHasNoEffect) {
  for (const std::string line :
       {R"("pad_token_id": -1)", R"("eos_token_id": -1)", R"("eos_token_id": [-1])",
        R"("suppress_tokens": [-1])", R"("begin_suppress_tokens": [-1])", R"("no_repeat_ngram_size": -1)",
        R"("encoder_no_repeat_ngram_size": -1)", R"("min_length": -1)", R"("min_new_tokens": -1)",
        R"("top_p": 1.5)", R"("typical_p": 2)", R"("epsilon_cutoff": -1)", R"("epsilon_cutoff": 1)",
        R"("eta_cutoff": 3)", R"("max_length": -1)", R"("top_k": -1)"}) {
    const GenerationConfig config = parse(R"({"do_sample": true, )" + line + "}");
    const SamplingParams& sampling = config.sampling;
    EXPECT_EQ(sampling.needs_host(), "") << line;
    EXPECT_EQ(sampling.top_p, 1) << line;
    EXPECT_EQ(sampling.top_k, line.starts_with("\"top_k") ? 0 : 50) << line;
    EXPECT_TRUE(config.eos_token_ids.empty()) << line;
    EXPECT_FALSE(config.pad_token_id || config.max_length) << line;
  }
  EXPECT_EQ(parse(R"({"bos_token_id": [3, 4]})").bos_token_id, 3);
  EXPECT_EQ(parse(R"({"do_sample": true, "top_p": 0})").sampling.top_p, 0) << "one token stays";
}

TEST(SamplingParams, ValidateNamesFieldValueAndRange) {
  const auto error = [](const SamplingParams& params) -> std::string {
    try {
      params.validate();
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error({}), "no error");
  EXPECT_EQ(error({.temperature = -1}), "[sampling] temperature is -1; it must be 0 to 100");
  EXPECT_EQ(error({.top_k = -3}), "[sampling] top_k is -3; it must be 0 (all) or a number of tokens");
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  for (float bad : {nan, infinity, -0.5f}) {
    EXPECT_NE(error({.temperature = bad}), "no error") << bad;
    EXPECT_NE(error({.top_p = bad}), "no error") << bad;
    EXPECT_NE(error({.min_p = bad}), "no error") << bad;
    EXPECT_NE(error({.typical_p = bad}), "no error") << bad;
    EXPECT_NE(error({.repetition_penalty = bad}), "no error") << bad;
  }
}

TEST(SamplingParams, VisitNamesEveryField) {
  SamplingParams params;
  size_t bytes = 0;
  std::set<std::string> names;
  SamplingParams::visit(params, [&](const char* name, auto& field, const SettingHelp& help) {
    bytes += sizeof(field);
    names.insert(name);
    EXPECT_NE(std::string(help.text), "");
  });
  EXPECT_EQ(bytes, 12 * sizeof(float) + 7 * sizeof(int32_t) + sizeof(uint64_t));
  // Every number of the parameters is tested.
  const size_t lists = sizeof(decltype(params.logit_bias)) + sizeof(decltype(params.sequence_bias)) +
                       sizeof(decltype(params.bad_words_ids)) + 3 * sizeof(decltype(params.suppress_tokens));
  EXPECT_LT(sizeof(params) - bytes - lists, alignof(SamplingParams));
  EXPECT_EQ(names.size(), 20u);
}

}  // namespace
}  // namespace heddle
