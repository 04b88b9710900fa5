// Conversations with the shipped model, without a terminal.
#include "heddle/session/conversation.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/model/build/family.h"

namespace heddle {
namespace {

const std::string kModel = HEDDLE_SOURCE_DIR "/models/storyteller";
// The model does not know conversations: each message is a sum or the beginning of a story, a separate text.
constexpr const char* kTemplate =
    "{% for m in messages %}{% if m.role == 'assistant' %}{{ m.content }}{{ eos_token }}"
    "{% else %}{{ bos_token }}{{ m.content }}{% endif %}{% endfor %}";

struct Conversations : testing::Test {
  Tokenizer tokenizer = Tokenizer::load(kModel + "/tokenizer.json");
  std::string folder = testing::TempDir() + "heddle_conversation_test";
  ChatTemplate form = load_template();
  AnswerSettings settings = model_settings(kModel);
  Engine engine{open_model(kModel), {.max_context = 64, .max_sequences = 1}};

  ~Conversations() override { std::filesystem::remove_all(folder); }

  // Has the special tokens of the model.
  ChatTemplate load_template() const {
    std::filesystem::create_directories(folder);
    write_file(folder + "/form", kTemplate);
    return ChatTemplate::load(kModel, folder + "/form");
  }
  Conversation begin(bool slide = false) { return {engine, tokenizer, form, settings, slide}; }
};

TEST_F(Conversations, ATurnReadsOnlyWhatIsNew) {
  Conversation conversation = begin();
  std::string text;
  const TurnStats first = conversation.say("27 + 45 =", [&](const std::string& more) { text += more; });
  EXPECT_EQ(text, " 72.");
  EXPECT_EQ(first.reason, "eos");
  EXPECT_EQ(first.prompt, 8u);
  EXPECT_EQ(first.kept, 0u);
  EXPECT_EQ(first.answer, 4u);
  // 8 + 4 are in the KV cache; the end token, a begin token and the new sum are not.
  const TurnStats second = conversation.say("9 + 2 =");
  EXPECT_EQ(second.prompt, 19u);
  EXPECT_EQ(second.kept, 12u);
  EXPECT_EQ(second.context, 64);
  ASSERT_EQ(conversation.messages().size(), 4u);
  EXPECT_EQ(conversation.messages()[1].content, " 72.");
  EXPECT_EQ(conversation.messages()[2].role, "user");
  conversation.reset();
  EXPECT_TRUE(conversation.messages().empty());
  EXPECT_EQ(conversation.say("27 + 45 =").kept, 7u) << "the last token is read again, for what follows it";
}

TEST_F(Conversations, StopWhereTheyAreAsked) {
  settings.eos_token_id.clear();
  Conversation conversation = begin();
  int pieces = 0;
  const auto count = [&](const std::string&) { ++pieces; };
  const TurnStats turn = conversation.say("Once upon a time", count, [&] { return pieces >= 3; });
  EXPECT_EQ(turn.reason, "interrupted");
  EXPECT_GE(turn.answer, 3u);
  EXPECT_LT(turn.answer, 50u);
  EXPECT_EQ(conversation.messages().size(), 2u) << "what was made stays";
  const TurnStats none = conversation.say("Once more", count, [] { return true; });
  EXPECT_EQ(none.answer, 0u);
  EXPECT_EQ(conversation.messages().size(), 2u) << "a message without an answer does not";
}

TEST_F(Conversations, StopInTheMiddleOfAStep) {
  std::atomic<bool> asked = false;
  EngineOptions options{.max_context = 64, .max_sequences = 1};
  options.run.tap = [&](const Instruction&, u32) {
    if (!asked) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  options.run.cancelled = [&] { return asked = true; };  // at its first look, 50 ms after the beginning
  Engine slow(open_model(kModel), options);
  Conversation conversation(slow, tokenizer, form, settings, false);
  const TurnStats turn = conversation.say("27 + 45 =", {}, [&] { return asked.load(); });
  EXPECT_EQ(turn.reason, "interrupted");
  EXPECT_EQ(turn.answer, 0u);
  EXPECT_TRUE(conversation.messages().empty());
}

TEST_F(Conversations, AFaultWhileOneStopsIsStillAFault) {
  std::atomic<bool> asked = false;
  EngineOptions options{.max_context = 64, .max_sequences = 1};
  options.run.tap = [&](const Instruction&, u32) {
    asked = true;
    fail(ErrorCode::kDevice, "[here] a fault");
  };
  Engine broken(open_model(kModel), options);
  Conversation conversation(broken, tokenizer, form, settings, false);
  EXPECT_THROW(conversation.say("27 + 45 =", {}, [&] { return asked.load(); }), Error);
}

TEST_F(Conversations, AnErrorAddsNothing) {
  Conversation conversation = begin();
  EXPECT_THROW(conversation.say("27 + 45 =", [](const std::string&) { fail(ErrorCode::kIo, "[here] full"); }),
               Error);
  EXPECT_TRUE(conversation.messages().empty());
  EXPECT_THROW(conversation.say(std::string(400, 'x')), Error) << "the context does not hold it";
  EXPECT_TRUE(conversation.messages().empty());
  conversation.say("27 + 45 =");
  EXPECT_EQ(conversation.messages().back().content, " 72.");
}

TEST_F(Conversations, AFullContextStopsOrSlides) {
  const auto fill = [](Conversation& conversation) {
    size_t dropped = 0;
    for (int i = 0; i < 7; ++i) dropped += conversation.say(std::to_string(i) + " + 45 =").dropped;
    return dropped;
  };
  {
    Conversation stops = begin();
    EXPECT_THROW(fill(stops), Error);
  }
  Conversation slides = begin(true);
  const size_t dropped = fill(slides);
  EXPECT_GE(dropped, 4u);
  EXPECT_EQ(slides.messages().size(), 14 - dropped);
  EXPECT_EQ(slides.messages().front().content, std::to_string(dropped / 2) + " + 45 =");
}

TEST_F(Conversations, AreKeptInAFile) {
  Conversation conversation = begin();
  conversation.set_system("1 + 1 = 2.");
  conversation.say("27 + 45 =");
  const std::string file = folder + "/talk.json";
  conversation.save(file);
  conversation.set_system("");
  conversation.reset();
  conversation.load(file);
  EXPECT_EQ(conversation.system(), "1 + 1 = 2.");
  ASSERT_EQ(conversation.messages().size(), 2u);
  EXPECT_EQ(conversation.messages()[0].content, "27 + 45 =");
  write_file(file, "{\"messages\": [{\"role\": \"assistant\", \"content\": \"\"}]}");
  EXPECT_THROW(conversation.load(file), Error);
  EXPECT_EQ(conversation.messages().size(), 2u);
}

}  // namespace
}  // namespace heddle
