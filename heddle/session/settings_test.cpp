#include "heddle/session/settings.h"

#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"

namespace heddle {
namespace {

const std::string kSettingsModel = HEDDLE_SOURCE_DIR "/models/storyteller";

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

// Every field by its name, as a person might write it.
constexpr const char* kAll = R"({
  "temperature": 0.5, "top_k": 9, "top_p": 0.25, "min_p": 0.125, "typical_p": 0.75, "repetition_penalty": 1.5,
  "presence_penalty": 0.5, "frequency_penalty": -0.5, "logit_bias": {"5": -100, "6": 2.5},
  "no_repeat_ngram_size": 3, "seed": 7, "sequence_bias": [[[1, 2], -2.5]], "bad_words_ids": [[4], [5, 6]],
  "top_h": 0.5, "epsilon_cutoff": 0.25, "eta_cutoff": 0.125, "encoder_repetition_penalty": 1.5,
  "encoder_no_repeat_ngram_size": 2, "min_length": 3, "min_new_tokens": 2, "forced_bos_token_id": 4,
  "exponential_decay_start": 5, "exponential_decay_factor": 1.25, "suppress_tokens": [1],
  "begin_suppress_tokens": [2], "forced_eos_token_id": 3, "max_tokens": 12, "logprobs": 2, "stop": ["a", "b"], "eos_token_id": [3, 8],
  "response_format": {"type": "json_object"}})";

AnswerSettings read_all() {
  AnswerSettings settings;
  const JsonDocument document(kAll, "all");
  document.root().for_each_member([&](const std::string& name, const JsonView& value) {
    EXPECT_TRUE(read_setting(settings, name, value)) << name;
  });
  return settings;
}

template <class T>
bool differ(const T& a, const T& b) {
  return a != b;
}
bool differ(const std::vector<SequenceBias>& a, const std::vector<SequenceBias>& b) {
  return a.size() != b.size();
}

// The fields in which both differ.
std::set<std::string> differences(const AnswerSettings& a, const AnswerSettings& b) {
  std::set<std::string> names;
  AnswerSettings::visit(a, [&](const std::string& name, const auto& left, const SettingHelp&) {
    AnswerSettings::visit(b, [&](const std::string& other, const auto& right, const SettingHelp&) {
      if constexpr (std::is_same_v<decltype(left), decltype(right)>) {
        if (name == other && differ(left, right)) names.insert(name);
      }
    });
  });
  return names;
}

std::set<std::string> all_names() {
  std::set<std::string> names;
  const AnswerSettings any;
  AnswerSettings::visit(any, [&](const std::string& name, const auto&, const SettingHelp& help) {
    EXPECT_TRUE(names.insert(name).second) << name << " comes twice";
    EXPECT_NE(std::string(help.text), "") << name;
  });
  return names;
}

TEST(Settings, EveryFieldIsReadFromJson) {
  const AnswerSettings settings = read_all();
  EXPECT_EQ(differences(settings, {}), all_names());
  EXPECT_EQ(settings.sampling.sequence_bias[0].tokens, (std::vector<i32>{1, 2}));
  EXPECT_EQ(settings.stop, (std::vector<std::string>{"a", "b"}));
  settings.validate();
}

TEST(Settings, JsonIsRefusedWithItsPath) {
  AnswerSettings settings;
  const JsonDocument document(R"({"stop": "", "top_k": 1.5, "frob": 1})", "file");
  const JsonView root = document.root(), stop = root.at("stop"), top_k = root.at("top_k");
  EXPECT_NE(message_of([&] { read_setting(settings, "stop", stop); }).find("[file] stop is"),
            std::string::npos);
  EXPECT_NE(message_of([&] { read_setting(settings, "top_k", top_k); }).find("top_k is 1.5"),
            std::string::npos);
  EXPECT_FALSE(read_setting(settings, "frob", root.at("frob")));
}

TEST(Settings, AcceptsTheNamesOfOpenAI) {
  AnswerSettings settings;
  const JsonDocument document(
      R"({"min_tokens": 3, "logit_bias": {"4": -100}, "wrong": {"a": 1}, "minus": {"-1": 1}})", "file");
  const JsonView root = document.root(), least = root.at("min_tokens"), bias = root.at("logit_bias");
  EXPECT_TRUE(read_setting(settings, "min_tokens", least));
  EXPECT_EQ(settings.sampling.min_new_tokens, 3);
  EXPECT_TRUE(read_setting(settings, "logit_bias", bias));
  EXPECT_EQ(settings.sampling.logit_bias.of_token, (std::map<i32, float>{{4, -100}}));
  require_known_tokens(settings, 5);
  EXPECT_NE(message_of([&] { require_known_tokens(settings, 4); }).find("logit_bias has token 4"),
            std::string::npos);
  for (const auto& [name, text] : {std::pair{"wrong", "'a' is no token id"}, {"minus", "'-1' is no token"}}) {
    const JsonView value = root.at(name);
    EXPECT_NE(message_of([&] { read_setting(settings, "logit_bias", value); }).find(text), std::string::npos);
  }
  for (const float number : {-100.5f, 101.0f, NAN})
    EXPECT_NE(message_of([&] {
                AnswerSettings{.sampling = {.logit_bias = {{{1, number}}}}}.validate();
              }).find("must be -100 to 100"),
              std::string::npos);
}

TEST(Settings, AProgramDoesWhatConcernsSingleTokens) {
  AnswerSettings settings = {.eos_token_id = {7, 8}};
  settings.sampling = {.presence_penalty = 0.5f,
                       .frequency_penalty = 0.25f,
                       .min_length = 12,
                       .min_new_tokens = 3,
                       .logit_bias = {{{1, -100}, {2, 4}}},
                       .sequence_bias = {{{2}, 1}},
                       .bad_words_ids = {{4}},
                       .suppress_tokens = {5},
                       .begin_suppress_tokens = {6}};
  EXPECT_EQ(chooser_of(settings.sampling), "the program");
  const SamplingSettings made = program_sampling(settings, 10);
  EXPECT_EQ(made.presence_penalty, 0.5f);
  EXPECT_EQ(made.frequency_penalty, 0.25f);
  EXPECT_EQ(made.bias, (std::vector<std::pair<i32, float>>{
                           {1, -INFINITY}, {2, 4}, {2, 1}, {4, -INFINITY}, {5, -INFINITY}}));
  EXPECT_EQ(made.not_before, (std::vector<std::pair<i32, i32>>{{6, 1}, {7, 3}, {8, 3}}));
  EXPECT_EQ(program_sampling(settings, 2).not_before.back().second, 10) << "of prompt and answer";
  settings.sampling.bad_words_ids = {{4, 5}};
  EXPECT_EQ(chooser_of(settings.sampling), "the host, for bad_words_ids");
  EXPECT_TRUE(program_sampling(settings, 2).bias.empty()) << "the host does all of it";
}

TEST(Settings, TakesWhatIsGivenAndNothingElse) {
  const AnswerSettings asked = read_all();
  for (const std::string& name : all_names()) {
    AnswerSettings settings;
    take_given(settings, asked, [&](std::string_view one) { return one == name; });
    EXPECT_EQ(differences(settings, {}), std::set{name});
  }
  AnswerSettings settings{.stop = {"model's"}, .eos_token_id = {1}};
  take_given(settings, asked, [](std::string_view) { return true; });
  EXPECT_EQ(settings.stop, (std::vector<std::string>{"model's", "a", "b"}));
  EXPECT_EQ(settings.eos_token_id, (std::vector<i32>{3, 8}));
}

TEST(Settings, ValuesOutOfRangeAreNamed) {
  const auto message = [](const AnswerSettings& settings) {
    return message_of([&] { settings.validate(); });
  };
  EXPECT_NE(message({.max_tokens = 0}).find("max_tokens is 0; must be positive"), std::string::npos);
  EXPECT_NE(message({.logprobs = -2}).find("logprobs is -2"), std::string::npos);
  EXPECT_NE(message({.sampling = {.top_p = 2}}).find("top_p is 2"), std::string::npos);
  EXPECT_NE(message({.stop = {""}}), "accepted");
  EXPECT_EQ(message({}), "accepted");
}

TEST(Settings, ComeFromTheConfigOfAModelWithoutItsOwnFile) {
  const std::string folder = testing::TempDir() + "heddle_settings_model";
  std::filesystem::create_directories(folder);
  write_file(folder + "/config.json", R"({"eos_token_id": [5, 6], "num_beams": 4})");
  EXPECT_NE(message_of([&] { model_settings(folder); }).find("--ignore-generation num_beams"),
            std::string::npos);
  EXPECT_EQ(model_settings(folder, {"num_beams"}).eos_token_id, (std::vector<i32>{5, 6}));
  EXPECT_NE(message_of([&] { model_settings(folder, {"beams"}); }).find("'beams' is no setting"),
            std::string::npos);
  write_file(folder + "/generation_config.json", "{}");
  EXPECT_TRUE(model_settings(folder).eos_token_id.empty()) << "generation_config.json wins whole";
  std::filesystem::remove_all(folder);
}

TEST(Settings, ComeFromAModel) {
  const Tokenizer tokenizer = Tokenizer::load(kSettingsModel + "/tokenizer.json");
  AnswerSettings settings = model_settings(kSettingsModel);
  EXPECT_EQ(settings.eos_token_id, (std::vector<i32>{tokenizer.token_to_id("<|end_of_text|>").value()}));
  EXPECT_TRUE(model_settings(kSettingsModel + "/none").eos_token_id.empty());
  forbid(settings, "fox in", tokenizer);
  EXPECT_EQ(settings.sampling.bad_words_ids.size(), 2u);
  EXPECT_EQ(chooser_of(settings.sampling), "the host, for bad_words_ids");
  EXPECT_THROW(forbid(settings, "", tokenizer), Error);
  require_known_tokens(settings, 3072);
  settings.eos_token_id.push_back(5000);
  EXPECT_NE(message_of([&] { require_known_tokens(settings, 3072); }).find("eos_token_id has token 5000"),
            std::string::npos);
  drop_impossible_ends(settings, 3072);
  EXPECT_EQ(settings.eos_token_id, model_settings(kSettingsModel).eos_token_id);
}

}  // namespace
}  // namespace heddle
