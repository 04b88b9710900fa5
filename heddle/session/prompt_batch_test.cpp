// A file of prompts on the shipped model. tests/program/generate_batch_test.cpp tests what remains after a crash.
#include "heddle/session/prompt_batch.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/model/build/family.h"

namespace heddle {
namespace {

const std::string kBatchModel = HEDDLE_SOURCE_DIR "/models/storyteller";

struct PromptBatches : testing::Test {
  Tokenizer tokenizer = Tokenizer::load(kBatchModel + "/tokenizer.json");
  std::shared_ptr<const Model> model = open_model(kBatchModel);
  std::string folder = testing::TempDir() + "heddle_prompt_batch_test";

  PromptBatches() {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    write_file(
        folder + "/prompts",
        "{\"prompt\": \"27 + 45 =\"}\n{\"prompt\": \"9 + 2 =\", \"stop\": \"1\"}\n"
        "{\"prompt\": \"Once upon a time\", \"max_tokens\": 20, \"typical_p\": 0.5, \"temperature\": 1}\n");
  }
  ~PromptBatches() override { std::filesystem::remove_all(folder); }

  PromptBatch batch(i32 n = 1, const AnswerSettings& settings = model_settings(kBatchModel),
                    const std::string& made_by = kBatchModel) const {
    return {{.prompts = folder + "/prompts",
             .results = folder + "/results",
             .model = identity_of(*model, made_by),
             .n = n},
            settings,
            tokenizer,
            model->info()};
  }
  std::string results() const { return read_file(folder + "/results"); }
};

TEST_F(PromptBatches, GoOnWhereTheyWereStopped) {
  {
    PromptBatch begun = batch();
    EXPECT_EQ(begun.wanted(), 3u);
    Engine engine(model, {.max_context = begun.context(), .max_sequences = 1});
    begun.run(engine, [&] { return begun.done() >= 1; });
    EXPECT_EQ(begun.left(), 2u);
  }
  PromptBatch rest = batch();
  EXPECT_EQ(rest.done(), 1u);
  EXPECT_EQ(rest.context(), 264) << "eight tokens and an answer of 256";
  Engine engine(model, {.max_context = rest.context(), .max_sequences = 2});
  size_t calls = 0;
  const PromptBatchStats stats = rest.run(engine, never_stop, [&] { ++calls; });
  EXPECT_EQ(calls, 2u);
  EXPECT_EQ(stats.by_host, 1u);
  EXPECT_EQ(stats.by_program, 1u);
  EXPECT_EQ(rest.left(), 0u);
  EXPECT_NE(results().find("\"text\":\" 72.\",\"finish_reason\":\"eos\""), std::string::npos) << results();
  EXPECT_NE(results().find("\"text\":\" \",\"finish_reason\":\"stop\""), std::string::npos) << results();
  const std::string before = results();
  EXPECT_EQ(rest.run(engine).steps.steps, 0u) << "nothing is done twice";
  EXPECT_EQ(results(), before);
}

// Where a long context changes what positions mean, no answer depends on the other prompts.
TEST_F(PromptBatches, HaveTheContextThatWasAskedForNotWhatPromptsNeed) {
  ModelInfo info = model->info();
  info.short_positions = 300;
  const auto context = [&](i32 asked) {
    return PromptBatch({.prompts = folder + "/prompts", .results = folder + "/results", .max_context = asked},
                       model_settings(kBatchModel), tokenizer, info)
        .context();
  };
  EXPECT_EQ(context(0), 264);
  EXPECT_EQ(context(300), 264);
  EXPECT_EQ(context(301), 301);
  EXPECT_EQ(context(700), 301) << "longer than 300, as was asked for";
  info.short_positions = 100;
  EXPECT_EQ(context(0), 100);
  EXPECT_EQ(context(700), 264);
}

// The message of a batch with these settings about results that were made with the model's own.
std::string refused(const auto& batch, const AnswerSettings& settings) {
  try {
    batch(settings);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

template <class T>
void change(T& field) {
  field = field == 0 ? T(std::is_integral_v<T> ? 1 : 0.5) : T(field / 2);
}
void change(std::vector<std::string>& field) {
  field.emplace_back("no such text");
}
void change(std::vector<i32>& field) {
  field.push_back(7);
}
void change(std::vector<std::vector<i32>>& field) {
  field.push_back({7, 8});
}
void change(TokenBias& field) {
  field.of_token[2] = 1;
}
void change(std::vector<SequenceBias>& field) {
  field.push_back({{7, 8}, 0.5});
}
void change(ResponseFormat& field) {
  const Json form = Json::object({{"type", "json_object"}});
  field = read_response_format(JsonView(form, "form"));
}

TEST_F(PromptBatches, RefuseResultsOfOtherSettings) {
  write_file(folder + "/prompts", "{\"prompt\": \"27 + 45 =\"}\n");
  {
    PromptBatch first = batch();
    Engine engine(model, {.max_context = first.context(), .max_sequences = 1});
    first.run(engine);
  }
  EXPECT_EQ(batch().left(), 0u);
  const auto with = [&](const AnswerSettings& settings) { batch(1, settings); };
  size_t settings_seen = 0;
  const AnswerSettings any;
  AnswerSettings::visit(any, [&](const std::string& name, const auto&, const SettingHelp&) {
    AnswerSettings other = model_settings(kBatchModel);
    AnswerSettings::visit(other, [&](const std::string& one, auto& field, const SettingHelp&) {
      if (one == name) change(field);
    });
    const std::string said = refused(with, other);
    for (const std::string& word : {std::string("results:1]"), std::string("; give another file"),
                                    name + " is ", std::string(" in the file and ")})
      EXPECT_NE(said.find(word), std::string::npos) << name << ": " << said;
    ++settings_seen;
  });
  EXPECT_GT(settings_seen, 20u);
}

TEST_F(PromptBatches, RefuseResultsOfAnotherModel) {
  const std::string other = folder + "/other";
  std::filesystem::create_directory(other);
  for (const auto& file : std::filesystem::directory_iterator(kBatchModel))
    if (file.path().filename() != "tokenizer.json")
      std::filesystem::create_symlink(file.path(), std::filesystem::path(other) / file.path().filename());
  write_file(other + "/tokenizer.json", read_file(kBatchModel + "/tokenizer.json") + "\n");
  {
    PromptBatch first = batch();
    Engine engine(model, {.max_context = first.context(), .max_sequences = 2});
    first.run(engine);
  }
  const std::string said =
      refused([&](const AnswerSettings& s) { batch(1, s, other); }, model_settings(kBatchModel));
  EXPECT_NE(said.find("model is "), std::string::npos) << said;
  std::filesystem::remove(other + "/config.json");
  write_file(other + "/config.json", read_file(kBatchModel + "/config.json") + "\n");
  EXPECT_NE(identity_of(*open_model(other), kBatchModel), identity_of(*model, kBatchModel));
}

TEST_F(PromptBatches, RefuseResultsThatDoNotSayWhatMadeThem) {
  std::vector<i32> tokens = tokenizer.encode("27 + 45 =", true);
  Json line = Json::object({{"id", 1}, {"prompt_tokens", tokens}});
  write_file(folder + "/results", line.dump() + "\n");
  EXPECT_NE(refused([&](const AnswerSettings& s) { batch(1, s); }, model_settings(kBatchModel))
                .find("does not say which model"),
            std::string::npos);
}

TEST_F(PromptBatches, RefuseOtherResults) {
  write_file(folder + "/results", "{\"id\": 1, \"prompt_tokens\": [1]}\n");
  EXPECT_THROW(batch(), Error);
  EXPECT_THROW(batch(0), Error);
}

}  // namespace
}  // namespace heddle
