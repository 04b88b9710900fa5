// Answers of the shipped model, from tokens to text.
#include "heddle/session/answer.h"

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/model/build/family.h"
#include "heddle/session/answer_json.h"

namespace heddle {
namespace {

const std::string kStory = HEDDLE_SOURCE_DIR "/models/storyteller";

struct Answers : testing::Test {
  Tokenizer tokenizer = Tokenizer::load(kStory + "/tokenizer.json");
  AnswerSettings settings = model_settings(kStory);
  Engine engine{open_model(kStory), {.max_sequences = 2}};

  std::shared_ptr<Answer> ask(const std::string& prompt) const {
    return std::make_shared<Answer>(settings, tokenizer.encode(prompt, true), tokenizer);
  }
  std::shared_ptr<Answer> run(const std::string& prompt, const StopCallback& stop = never_stop) {
    const std::vector all = {ask(prompt)};
    run_answers(engine, all, stop);
    EXPECT_TRUE(all[0]->ended());
    return all[0];
  }
};

TEST_F(Answers, EndWithTheModelsToken) {
  const std::vector all = {ask("27 + 45 ="), ask("9 + 2 =")};
  std::string streamed;
  int ended = 0;
  size_t read = 0;
  all[0]->on_text = [&](const std::string& text) { streamed += text; };
  all[0]->on_end = [&] { ++ended; };
  EXPECT_EQ(all[0]->reason(), "interrupted") << "it has not begun";
  run_answers(engine, all, never_stop, [&](size_t tokens) { read = tokens; });
  EXPECT_EQ(all[0]->text(), " 72.");
  EXPECT_EQ(all[1]->text(), " 11.");
  EXPECT_EQ(streamed, all[0]->text());
  EXPECT_EQ(ended, 1);
  EXPECT_GE(read, all[0]->prompt().size());
  for (const auto& answer : all) EXPECT_EQ(answer->reason(), "eos");
  EXPECT_EQ(tokenizer.decode(all[0]->tokens(), true), " 72.");
}

TEST_F(Answers, EndBeforeAStopString) {
  settings.stop = {"2."};
  const auto answer = run("27 + 45 =");
  EXPECT_EQ(answer->text(), " 7");
  EXPECT_EQ(answer->reason(), "stop");
}

TEST_F(Answers, EndWithTheirLength) {
  settings.max_tokens = 5;
  settings.logprobs = 3;
  const auto answer = run("Once upon a time");
  EXPECT_EQ(answer->tokens().size(), 5u);
  EXPECT_EQ(answer->reason(), "length");
  ASSERT_EQ(answer->logprobs().size(), 5u);
  const TokenLogprobs& first = answer->logprobs()[0];
  ASSERT_EQ(first.likeliest.size(), 3u);
  EXPECT_EQ(first.likeliest[0].first, answer->tokens()[0]) << "the likeliest is chosen";
  EXPECT_EQ(first.likeliest[0].second, first.chosen);
  EXPECT_LT(first.chosen, 0);
  const Json json = json_of(*answer);
  EXPECT_EQ(json.at("finish_reason"), "length");
  EXPECT_EQ(json.at("tokens"), Json(answer->tokens()));
  EXPECT_EQ(json.at("logprobs").items()[0].at("top").size(), 3u);
  EXPECT_EQ(json.dump().find('\n'), std::string::npos);
}

TEST_F(Answers, EndWhereTheyAreStopped) {
  settings.eos_token_id.clear();
  const auto one = ask("Once upon a time");
  const std::vector all = {one};
  run_answers(engine, all, [&] { return one->tokens().size() >= 4; });
  EXPECT_EQ(one->reason(), "interrupted");
  EXPECT_TRUE(one->ended());
  EXPECT_GE(one->tokens().size(), 4u);
  EXPECT_LT(one->tokens().size(), size_t(settings.max_tokens));
}

TEST_F(Answers, ThrowWhatACallbackThrows) {
  const std::vector all = {ask("27 + 45 =")};
  all[0]->on_text = [](const std::string&) { fail(ErrorCode::kIo, "[here] enough"); };
  EXPECT_THROW(run_answers(engine, all), Error);
  EXPECT_EQ(run("27 + 45 =")->text(), " 72.") << "the engine can be used again";
}

TEST_F(Answers, RefuseSettingsOutOfRange) {
  settings.max_tokens = 0;
  EXPECT_THROW(ask("a"), Error);
}

}  // namespace
}  // namespace heddle
