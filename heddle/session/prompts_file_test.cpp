#include "heddle/session/prompts_file.h"

#include <gtest/gtest.h>

#include "heddle/base/error.h"

namespace heddle {
namespace {

std::string message_of(std::string_view text) {
  try {
    parse_prompts(text, "p.jsonl", {});
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PromptsFile, ReadsLinesWithTheirSettings) {
  const auto lines = parse_prompts(
      "{\"prompt\": \"a\"}\n"
      "\n"
      "  {\"id\": \"x\", \"tokens\": [3, 4], \"temperature\": 0.5, \"seed\": 7, \"top_k\": 9}\r\n"
      "{\"prompt\": \"\", \"id\": -5, \"stop\": [\".\", \"!\"], \"max_tokens\": 12}",
      "p.jsonl", {.sampling = {.temperature = 1, .top_p = 0.5f}, .stop = {"end"}});
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].id, "1");
  EXPECT_EQ(lines[0].prompt, "a");
  EXPECT_EQ(lines[0].settings.sampling.temperature, 1);
  EXPECT_EQ(lines[1].line, 3u);
  EXPECT_EQ(lines[1].id, "\"x\"");
  EXPECT_FALSE(lines[1].prompt);
  EXPECT_EQ(lines[1].tokens, (std::vector<int32_t>{3, 4}));
  EXPECT_EQ(lines[1].settings.sampling.temperature, 0.5f);
  EXPECT_EQ(lines[1].settings.sampling.top_p, 0.5f);
  EXPECT_EQ(lines[1].settings.sampling.seed, 7u);
  EXPECT_EQ(lines[1].settings.sampling.top_k, 9);
  EXPECT_EQ(lines[2].id, "-5");
  EXPECT_EQ(lines[2].settings.stop, (std::vector<std::string>{"end", ".", "!"}));
  EXPECT_EQ(lines[2].settings.max_tokens, 12);
  EXPECT_TRUE(parse_prompts("", "p.jsonl", {}).empty());
}

TEST(PromptsFile, SaysWhereItIsWrong) {
  const std::string good = "{\"prompt\": \"a\"}\n";
  const std::pair<const char*, std::vector<const char*>> cases[] = {
      {"{\"prompt\": \"a\"", {"[p.jsonl:2]", "not valid JSON"}},
      {"[1]", {"[p.jsonl:2]", "an object is expected"}},
      {"{}", {"[p.jsonl:2]", "no prompt and no tokens"}},
      {"{\"prompt\": \"a\", \"tokens\": [1]}", {"[p.jsonl:2]", "a prompt and tokens"}},
      {"{\"tokens\": []}", {"[p.jsonl:2]", "tokens is an array of 0"}},
      {"{\"tokens\": [1, -1]}", {"[p.jsonl:2]", "tokens[1] is -1"}},
      {"{\"prompt\": 3}", {"[p.jsonl:2]", "prompt is 3", "a string"}},
      {"{\"prompt\": \"a\", \"temprature\": 1}", {"[p.jsonl:2]", "temprature is 1", "no such setting"}},
      {"{\"prompt\": \"a\", \"top_p\": 2}", {"[p.jsonl:2]", "top_p is 2", "0 (the likeliest token) to 1"}},
      {"{\"prompt\": \"a\", \"top_k\": 1.5}", {"[p.jsonl:2]", "top_k is 1.5", "whole number"}},
      {"{\"prompt\": \"a\", \"max_tokens\": 0}", {"[p.jsonl:2]", "max_tokens is 0"}},
      {"{\"prompt\": \"a\", \"stop\": \"\"}", {"[p.jsonl:2]", "stop is \"\""}},
      {"{\"prompt\": \"a\", \"bad_words_ids\": [1]}", {"[p.jsonl:2]", "bad_words_ids[0] is 1"}},
      {"{\"prompt\": \"a\", \"sequence_bias\": [[[1]]]}",
       {"[p.jsonl:2]", "sequence_bias[0] is an array of 1"}},
      {"{\"prompt\": \"a\", \"eos_token_id\": []}", {"[p.jsonl:2]", "eos_token_id is an array of 0"}},
      {"{\"prompt\": \"a\", \"id\": 1}", {"[p.jsonl:2]", "id 1 is that of line 1"}},
      {"{\"prompt\": \"a\", \"id\": 1.5}", {"[p.jsonl:2]", "id is 1.5"}},
      {"{\"prompt\": \"\xff\"}", {"[p.jsonl:2]", "not valid JSON"}},
  };
  for (const auto& [line, words] : cases)
    for (const char* word : words) {
      const std::string message = message_of(good + line);
      EXPECT_NE(message.find(word), std::string::npos) << line << ": " << message << ", no " << word;
    }
}

}  // namespace
}  // namespace heddle
