// Answers that are known beforehand, through the program: their reasoning, spaces and lines.
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "heddle/base/file.h"
#include "heddle/base/json_to.h"
#include "heddle/text/tokenizer.h"
#include "tests/support/command.h"
#include "tests/support/scratch.h"
#include "tests/support/told_model.h"

namespace heddle {
namespace {

// A model of a few words, with a chat template, that writes `answer` after a prompt of `size` tokens.
class Told : public testing::Test {
 protected:
  void tell(const std::vector<ToldWord>& words, const std::string& chat_template, i32 size,
            const std::vector<std::string>& answer) {
    std::filesystem::create_directory(folder);
    write_told_tokenizer(folder, words);
    write_file(folder + "/chat_template.jinja", chat_template);
    std::map<std::string, i32> ids;
    for (size_t i = 0; i < words.size(); ++i) ids[words[i].text] = i32(i) + 1;
    std::map<i32, i32> told;
    for (size_t i = 0; i < answer.size(); ++i) told[size - 1 + i32(i)] = ids.at(answer[i]);
    write_told_model(folder, i32(words.size()) + 1, ids.at(answer.back()), told);
  }
  Outcome run(std::vector<std::string> args, const std::string& input = "") const {
    args.insert(args.begin() + 1, folder);
    args.insert(args.end(), {"--temperature", "0"});
    return run_program({.args = args, .input = input});
  }
  Json saved() const { return load_json(scratch.path("saved.json")).at("messages"); }

  Scratch scratch;
  const std::string folder = scratch.path("model");
  const std::string save = "/save " + scratch.path("saved.json") + "\n";
};

const std::vector<ToldWord> kHarmony = {{"<|start|>", true},
                                        {"<|channel|>", true},
                                        {"<|message|>", true},
                                        {"<|end|>", true},
                                        {"<|return|>", true},
                                        {"user"},
                                        {"assistant"},
                                        {"analysis"},
                                        {"final"},
                                        {"hi"},
                                        {"hm"},
                                        {"Hello"}};
constexpr const char* kHarmonyTemplate =
    "{%- for m in messages %}{%- if m.role == 'assistant' %}"
    "<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|end|>"
    "{%- else %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}<|start|>assistant{%- endif %}";

TEST_F(Told, ChannelsAreToldApart) {
  tell(kHarmony, kHarmonyTemplate, 7,
       {"<|channel|>", "analysis", "<|message|>", "hm", "<|end|>", "<|start|>", "assistant", "<|channel|>",
        "final", "<|message|>", "Hello", "<|return|>"});
  const Outcome outcome = run({"chat"}, "hi\n" + save + "/history\nhi\n/stats\n");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_words(outcome.out, {"Hello\nuser: hi\nassistant thought: hm\nassistant: Hello\n"});
  expect_words(outcome.err, {"(thinking) hm\n"});
  // The second turn reads the answer in its channel, without the analysis: 5 + 7 + 7.
  expect_words(outcome.out, {"prompt    19 tokens: 8 were in the KV cache"});
  const Json messages = saved();
  EXPECT_EQ(messages.items()[1].at("content"), "Hello");
  EXPECT_EQ(messages.items()[1].at("reasoning_content"), "hm");
  const Outcome again = run({"chat"}, "/load " + scratch.path("saved.json") + "\n/history\n");
  expect_words(again.out, {"assistant thought: hm\nassistant: Hello\n"});
}

TEST_F(Told, ThoughtsAreToldApart) {
  const std::vector<ToldWord> words = {{"<end>", true}, {"<think>"}, {"</think>"}, {"hi"},
                                       {"hm"},          {"Hello"},   {"\n"}};
  tell(words, "{{ messages[-1].content }}<think>\n{# </think> #}", 3,
       {"hm", "\n", "</think>", "\n", "\n", "Hello", "<end>"});
  const Outcome chat = run({"chat"}, "hi\n" + save);
  EXPECT_EQ(chat.out, "Hello\n") << chat.err;
  expect_words(chat.err, {"(thinking) hm\n"});
  EXPECT_EQ(saved().items()[1].at("content"), "Hello");
  EXPECT_EQ(saved().items()[1].at("reasoning_content"), "hm");
  const Outcome generated = run({"generate", "--chat", "--prompt", "hi"});
  EXPECT_EQ(generated.out, "Hello\n") << generated.err;
  expect_words(generated.err, {"(thinking) hm\n"});
  const Json json = parse_json(run({"generate", "--chat", "--prompt", "hi", "--json"}).out, "out");
  EXPECT_EQ(json.at("text"), "Hello");
  EXPECT_EQ(json.at("reasoning_content"), "hm");
  EXPECT_EQ(json.at("tokens").size(), 6u);
  // A prompt that is no turn is continued, marks and all.
  const Json plain = parse_json(run({"generate", "--prompt", "hi<think>\n", "--json"}).out, "out");
  EXPECT_EQ(plain.at("text"), "hm\n</think>\n\nHello");
  EXPECT_EQ(plain.find("reasoning_content"), nullptr);
}

TEST_F(Told, TheSpaceBeforeAnAnswerStays) {
  std::filesystem::create_directory(folder);
  std::filesystem::copy(HEDDLE_SOURCE_DIR "/tests/goldens/tokenizer/llama2/tokenizer.json", folder);
  write_file(folder + "/tokenizer_config.json", R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
  const Tokenizer tokenizer = Tokenizer::load(folder);
  const std::vector<i32> prompt = tokenizer.encode("hello", true), answer = tokenizer.encode("loom", false);
  std::map<i32, i32> told;
  for (size_t i = 0; i < answer.size(); ++i) told[i32(prompt.size() + i) - 1] = answer[i];
  const i32 end = *tokenizer.token_to_id("</s>");
  told[i32(prompt.size() + answer.size()) - 1] = end;
  write_told_model(folder, i32(tokenizer.vocab_size()), end, told);
  EXPECT_EQ(run({"generate", "--prompt", "hello", "--echo"}).out, "hello loom\n");
  EXPECT_EQ(run({"generate", "--prompt", "hello"}).out, " loom\n");
  const Json json = parse_json(run({"generate", "--prompt", "hello", "--json"}).out, "out");
  EXPECT_EQ(json.at("text"), " loom");
  EXPECT_EQ(run({"generate", "--prompt", "hello", "--stop", " loom"}).out, "\n");
  write_file(scratch.path("p.jsonl"), "\xEF\xBB\xBF{\"prompt\": \"hello\"}\r\n");
  const Outcome batch =
      run({"generate", "--prompts", scratch.path("p.jsonl"), "--out", scratch.path("r.jsonl")});
  EXPECT_EQ(batch.code, 0) << batch.err;
  EXPECT_EQ(parse_json(read_file(scratch.path("r.jsonl")), "results").at("text"), " loom");
  // A turn of a conversation is a text of its own.
  write_file(folder + "/chat_template.jinja", "{{ bos_token }}{{ messages[-1].content }}");
  write_file(folder + "/tokenizer_config.json",
             R"({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>"})");
  EXPECT_EQ(run({"chat"}, "hello\n").out, "loom\n");
}

TEST_F(Told, LineEndsAreNoText) {
  const std::vector<ToldWord> words = {{"<end>", true}, {"hi"}, {"Hello"}, {"\r"}, {"\xEF\xBB\xBF"}};
  tell(words, "{{ messages[-1].content }}", 1, {"Hello", "<end>"});
  const std::string mark = "\xEF\xBB\xBF";
  const Outcome chat = run({"chat"}, mark + "hi\r\n" + "/save " + scratch.path("saved.json") + "\r\n");
  EXPECT_EQ(chat.out, "Hello\n") << chat.err;
  EXPECT_EQ(saved().items()[0].at("content"), "hi");
  EXPECT_EQ(run({"generate", "--prompt", "-"}, mark + "hi\r\n").out, "Hello\n");
  const Outcome lines =
      run_program({.args = {"tokenize", folder, "--json-lines"}, .input = mark + "\"hi\"\r\n"});
  EXPECT_EQ(lines.out, "[2]\n") << lines.err;
}

TEST_F(Told, IdsWithoutATokenAreNoText) {
  tell({{"<end>", true}, {"hi"}, {"Hello"}}, "{{ messages[-1].content }}", 1, {"Hello", "<end>"});
  const Outcome outcome = run_program({.args = {"tokenize", folder, "--decode"}, .input = "2 9 3 70000"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "hiHello");
  expect_words(outcome.err, {"2 ids are no token and became no text: 9, 70000"});
  EXPECT_EQ(run_program({.args = {"tokenize", folder, "--decode"}, .input = "-1"}).code, 2);
}

TEST_F(Told, AChatWithoutAnAnswerFails) {
  tell({{"<end>", true}, {"hi"}, {"Hello"}},
       "{% if messages[-1].content != 'hi' %}{{ raise_exception('only hi') }}{% endif %}{{ "
       "messages[-1].content }}",
       1, {"Hello", "<end>"});
  const Outcome refused = run({"chat"}, "ho\n/stats\n");
  EXPECT_EQ(refused.code, 1);
  expect_words(refused.err, {"only hi", "no message was answered"});
  EXPECT_EQ(run({"chat"}, "ho\nhi\n").code, 0);
  EXPECT_EQ(run({"chat"}, "/stats\n").code, 0) << "nothing was asked";
  for (const char* lines : {"/load nowhere.json\n", "/stast\n", "/save\n", "/load nowhere.json\n/quit\n"})
    EXPECT_EQ(run({"chat"}, lines).code, 1) << lines;
  EXPECT_EQ(run({"chat"}, "/load nowhere.json\nhi\n").code, 0);
  EXPECT_EQ(run({"chat"}, "/load nowhere.json\n/stats\n").code, 0);
  const Outcome nothing = run({"chat"}, "");
  EXPECT_EQ(nothing.code, 1);
  expect_words(nothing.err, {"no message was answered: stdin had none"});
}

}  // namespace
}  // namespace heddle
