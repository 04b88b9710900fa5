#include "heddle/text/reasoning.h"

#include <string>

#include <gtest/gtest.h>

namespace heddle {
namespace {

struct ReadText {
  std::string reasoning, answer;
  bool operator==(const ReadText&) const = default;
};
void PrintTo(const ReadText& read, std::ostream* out) {
  *out << '[' << read.reasoning << "] [" << read.answer << ']';
}

const Tokenizer& plain() {
  static const Tokenizer made = Tokenizer::load(HEDDLE_SOURCE_DIR "/tests/goldens/tokenizer/gpt2");
  return made;
}

// The text read in one piece, which must be the same byte by byte.
ReadText read(const ReasoningForm* form, std::string_view text, std::string_view prompt = "",
              bool keeps_calls = false) {
  const auto take = [](const std::vector<ReasoningReader::Part>& parts, ReadText& made) {
    for (const auto& part : parts) (part.is_reasoning ? made.reasoning : made.answer) += part.text;
  };
  ReadText whole, pieces;
  ReasoningReader all(form, prompt, keeps_calls), each(form, prompt, keeps_calls);
  take(all.push(text), whole);
  take(all.flush(), whole);
  for (const char byte : text) take(each.push(std::string_view(&byte, 1)), pieces);
  take(each.flush(), pieces);
  EXPECT_EQ(whole, pieces) << text;
  return whole;
}

const ReasoningForm* form_of(std::string_view chat_template) {
  return find_reasoning_form(chat_template, plain());
}

TEST(Reasoning, StandsBetweenMarks) {
  const ReasoningForm* const form = form_of("{% if '</think>' in content %} <think> {% endif %}");
  ASSERT_TRUE(form);
  EXPECT_EQ(read(form, "<think>\nhm\n</think>\n\nHello"), (ReadText{"hm\n", "Hello"}));
  EXPECT_EQ(read(form, "\n<think>\n\n</think>\n\nHello"), (ReadText{"", "Hello"}));
  EXPECT_EQ(read(form, "hm</think>Hello", "user: hi\n<think>\n"), (ReadText{"hm", "Hello"}));
  EXPECT_EQ(read(form, "hm", "<think>"), (ReadText{"hm", ""})) << "it was cut";
  EXPECT_EQ(read(form, "Hello", "<think>\n\n</think>\n\n"), (ReadText{"", "Hello"}));
}

TEST(Reasoning, LeavesOtherTextAsItIs) {
  const ReasoningForm* const form = form_of("<think></think>");
  for (const std::string text :
       {" Hello ", "", " ", "a <think> b </think> c", "1 < 2 and <thin", "</think>", "x</thi"})
    EXPECT_EQ(read(form, text), (ReadText{"", text})) << text;
  EXPECT_EQ(read(nullptr, " <think>a</think> "), (ReadText{"", " <think>a</think> "}));
  EXPECT_EQ(read(form, "<think>a</think>b <think>c</think>"), (ReadText{"a", "b <think>c</think>"}));
}

TEST(Reasoning, IsInChannels) {
  const ReasoningForm* const form = form_of("<|channel|>analysis<|message|>");
  ASSERT_TRUE(form && form->channels);
  EXPECT_EQ(
      read(form, "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hello"),
      (ReadText{"hm", "Hello"}));
  EXPECT_EQ(read(form, "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>"),
            (ReadText{"{}", ""}));
  EXPECT_EQ(read(form, "<|message|>Hello<|return|>"), (ReadText{"", "Hello"}));
  EXPECT_EQ(read(form, " Hello"), (ReadText{"", " Hello"}));
  EXPECT_EQ(read(form, "<|channel|>analysis<|message|>h"), (ReadText{"h", ""})) << "it was cut";
}

TEST(Reasoning, LeavesCallsInTheAnswer) {
  const ReasoningForm* const form = form_of("<|channel|>analysis<|message|>");
  const auto read_call = [&](std::string_view text) { return read(form, text, "<|start|>assistant", true); };
  EXPECT_EQ(read_call("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary "
                      "to=functions.f <|constrain|>json<|message|>{}<|call|>"),
            (ReadText{"hm", "<|channel|>commentary to=functions.f json<|message|>{}<|call|>"}));
  EXPECT_EQ(read_call(" to=functions.f<|channel|>commentary json<|message|> {}"),
            (ReadText{"", "<|channel|>commentary json to=functions.f<|message|> {}"}));
  EXPECT_EQ(
      read_call(
          "<|channel|>commentary<|message|>I call.<|end|><|start|>assistant<|channel|>final<|message|>x"),
      (ReadText{"I call.", "x"}));
  EXPECT_EQ(
      read_call("<|channel|>commentary to=functions.f<|message|>{}<|call|><|channel|>final<|message|>x"),
      (ReadText{"", "<|channel|>commentary to=functions.f<|message|>{}<|call|>x"}));
  EXPECT_EQ(read_call("no header"), (ReadText{"", "no header"}));
}

TEST(Reasoning, HasTheMarksOfItsFamily) {
  const std::tuple<const char*, const char*, ReadText> cases[] = {
      {"<think></think><response></response>", "<think>a</think><response>b</response>", {"a", "b"}},
      {"<answer><think></think>", "<think>\na\n</think>\n<answer>\nb\n</answer>", {"a\n", "b\n"}},
      {"{{ '<seed:think>' + '</seed:think>' }}", "<seed:think>a</seed:think>b", {"a", "b"}},
      {"[THINK]..[/THINK]", "[THINK]a[/THINK]b", {"a", "b"}},
      {"<|START_THINKING|><|END_THINKING|><|START_RESPONSE|>",
       "<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>b<|END_RESPONSE|>",
       {"a", "b"}},
      {"<|inner_prefix|><|inner_suffix|>", "<|inner_prefix|>a<|inner_suffix|>b", {"a", "b"}},
      {"'Here is my thought process:' 'Here is my response:'",
       "Here is my thought process: a\n\nHere is my response: b",
       {"a\n\n", "b"}}};
  for (const auto& [chat_template, text, want] : cases)
    EXPECT_EQ(read(form_of(chat_template), text), want) << text;
  EXPECT_EQ(form_of("{{ messages[0].content }}"), nullptr);
}

}  // namespace
}  // namespace heddle
