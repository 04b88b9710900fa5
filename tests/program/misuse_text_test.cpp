// Mistakes with texts: sampling, files of prompts, eval, chat. See tests/support/misuse.h.
#include <algorithm>
#include <filesystem>

#include "heddle/base/file.h"
#include "tests/support/misuse.h"

namespace heddle {
namespace {

Strings batch(Strings more) {
  Strings args = {"generate", "@story", "--prompts", "@p", "--out", "@o"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// Text as a template argument.
template <size_t kSize>
struct Text {
  char bytes[kSize];
  consteval Text(const char (&text)[kSize]) { std::copy_n(text, kSize, bytes); }
};
// Writes the file `p`.
template <Text kText>
void prompts(const std::string& folder) {
  write_file(folder + "p", kText.bytes);
}

const Misuse kSampling[] = {
    {"typical_p_zero", generate({"--typical-p", "0"}), kWrongArguments, {"typical_p is 0", "above 0, to 1"}},
    {"ngram_negative",
     generate({"--no-repeat-ngram-size", "-1"}),
     kWrongArguments,
     {"no_repeat_ngram_size is -1", "0 (any)"}},
    {"bias_without_number",
     generate({"--sequence-bias", "12"}),
     kWrongArguments,
     {"--sequence-bias", "'12' has no =", "12,13=-2.5"}},
    {"bias_of_no_number",
     generate({"--sequence-bias", "12=x"}),
     kWrongArguments,
     {"--sequence-bias", "'x' is not a number"}},
    {"bias_of_an_unknown_token",
     generate({"--sequence-bias", "5000=1"}),
     kWrongArguments,
     {"sequence_bias has token 5000", "0 to 3071"}},
    {"logit_bias_of_an_unknown_token",
     generate({"--logit-bias", "5000=1"}),
     kWrongArguments,
     {"logit_bias has token 5000", "0 to 3071"}},
    {"logit_bias_of_no_number",
     generate({"--logit-bias", "12=x"}),
     kWrongArguments,
     {"--logit-bias", "'x' is not a number"}},
    {"frequency_penalty_large",
     generate({"--frequency-penalty", "3"}),
     kWrongArguments,
     {"frequency_penalty is 3", "-2 to 2"}},
    {"bad_word_empty", generate({"--bad-word", ""}), kWrongArguments, {"--bad-word", "empty"}},
    {"eos_of_an_unknown_token",
     generate({"--eos-token-id", "5000"}),
     kWrongArguments,
     {"eos_token_id has token 5000", "0 to 3071"}},
    {"n_zero", generate({"--n", "0"}), kWrongArguments, {"--n is 0", "1 to 10000"}},
    {"logprobs_of_text", generate({"--logprobs", "2"}), kWrongArguments, {"--logprobs is 2", "--json"}},
    {"logprobs_negative",
     generate({"--logprobs", "-2", "--json"}),
     kWrongArguments,
     {"logprobs is -2", "0 or more"}},
};

const Misuse kTexts[] = {
    {"prompts_without_out", generate({"--prompts", "@p"}), kWrongArguments, {"--out", "belong together"}},
    {"out_without_prompts", generate({"--out", "@o"}), kWrongArguments, {"--prompts", "belong together"}},
    {"prompts_and_a_prompt",
     generate({"--prompts", "@p", "--out", "@o", "--prompt", "a"}),
     kWrongArguments,
     {"--prompts", "leave out --prompt"}},
    {"sequences_zero", batch({"--sequences", "0"}), kWrongArguments, {"--sequences is 0", "1 to 512"}},
    {"no_prompts_file", batch({}), kFailed, {"/p]", "No such file"}},
    {"prompts_are_no_json",
     batch({}),
     kFailed,
     {"/p:2]", "not valid JSON"},
     prompts<"{\"prompt\": \"a\"}\nOnce">},
    {"prompts_with_a_wrong_setting",
     batch({}),
     kFailed,
     {"/p:1]", "top_p is 3", "0 (the likeliest token) to 1"},
     prompts<"{\"prompt\": \"a\", \"top_p\": 3}">},
    {"prompts_with_an_unknown_setting",
     batch({}),
     kFailed,
     {"/p:1]", "topp is 3", "no such setting"},
     prompts<"{\"prompt\": \"a\", \"topp\": 3}">},
    {"prompts_with_unknown_tokens",
     batch({}),
     kFailed,
     {"/p:1]", "token 4000", "0 to 3071"},
     prompts<"{\"tokens\": [1, 4000]}">},
    {"prompts_with_an_unknown_bad_word",
     batch({}),
     kFailed,
     {"/p:1]", "bad_words_ids has token 4000"},
     prompts<"{\"prompt\": \"a\", \"bad_words_ids\": [[1], [2, 4000]]}">},
    {"prompts_past_the_context",
     batch({"--max-context", "4"}),
     kFailed,
     {"/p:1]", "5 tokens", "holds 4"},
     prompts<"{\"prompt\": \"Once upon a time\"}">},
    {"prompts_without_any", batch({}), kFailed, {"/p]", "no prompts"}, prompts<"\n  \n">},
    {"out_holds_something_else",
     {"generate", "@story", "--prompts", "@p", "--out", "@o"},
     kFailed,
     {"/o:1]", "no result of heddle", "a new file"},
     [](const std::string& folder) {
       write_file(folder + "p", "{\"prompt\": \"a\"}\n");
       write_file(folder + "o", "{\"prompt\": \"a\"}\n");
     }},
    {"out_holds_a_strange_index",
     {"generate", "@story", "--prompts", "@p", "--out", "@o"},
     kFailed,
     {"/o:1]", "no result of heddle"},
     [](const std::string& folder) {
       write_file(folder + "p", "{\"prompt\": \"a\"}");
       write_file(folder + "o", "{\"id\": 1, \"index\": -1, \"prompt_tokens\": []}\n");
     }},
    {"results_in_no_folder",
     {"generate", "@story", "--prompts", "@p", "--out", "@none/o"},
     kFailed,
     {"none/o", "No such file"},
     prompts<"{\"prompt\": \"a\"}">},
    {"results_on_a_full_disk",
     {"generate", "@story", "--prompts", "@p", "--out", "/dev/full"},
     kFailed,
     {"/dev/full", "No space left"},
     prompts<"{\"prompt\": \"a\"}">},
    {"results_past_a_limit",
     batch({}),
     kFailed,
     {"/o]", "too large", "goes on from there"},
     prompts<"{\"prompt\": \"Once upon a time\"}">,
     {.largest_file = 50}},
    {"eval_without_text", {"eval", "@story"}, kWrongArguments, {"--text is required"}},
    {"eval_of_no_file", {"eval", "@story", "--text", "@p"}, kFailed, {"/p]", "No such file"}},
    {"eval_of_an_empty_file",
     {"eval", "@story", "--text", "@p"},
     kFailed,
     {"/p]", "1 tokens", "at least 2"},
     prompts<"">},
    {"eval_of_bytes",
     {"eval", "@story", "--text", "@p"},
     kWrongArguments,
     {"/p]", "UTF-8"},
     prompts<"a\xff">},
    {"eval_window_too_long",
     {"eval", "@story", "--text", "@p", "--window", "769"},
     kWrongArguments,
     {"--window is 769", "2 to 768"},
     prompts<"Once upon">},
    {"eval_stride_past_the_window",
     {"eval", "@story", "--text", "@p", "--window", "16", "--stride", "17"},
     kWrongArguments,
     {"--stride is 17", "1 to 16"},
     prompts<"Once upon">},
    {"eval_against_other_tokens",
     {"eval", "@story", "--text", "@p", "--compare", "@tiny"},
     kWrongArguments,
     {"3072", "131", "cannot be compared"},
     prompts<"Once upon">},
};

void without_template(const std::string& folder) {
  std::filesystem::remove(folder + "/story/chat_template.jinja");
}

const Misuse kChats[] = {
    {"chat_without_a_template",
     {"chat", "@story"},
     kFailed,
     {"story]", "no chat template", "--template FILE"},
     without_template},
    {"chat_with_no_such_template", {"chat", "@story", "--template", "@p"}, kFailed, {"/p]", "No such file"}},
    {"chat_with_a_broken_template",
     {"chat", "@story", "--template", "@p"},
     kWrongArguments,
     {"/p", "line 1"},
     prompts<"{% for m in messages %}{{ m.content }">},
    {"chat_full_of_something",
     {"chat", "@story", "--template", "@p", "--context-full", "grow"},
     kWrongArguments,
     {"--context-full is 'grow'", "stop or slide"},
     prompts<"x">},
    {"chat_with_a_wrong_setting",
     {"chat", "@story", "--template", "@p", "--top-p", "3"},
     kWrongArguments,
     {"top_p is 3", "0 (the likeliest token) to 1"},
     prompts<"x">},
    {"chat_with_variables_that_are_no_object",
     {"chat", "@story", "--chat-template-kwargs", "[1]"},
     kWrongArguments,
     {"[--chat-template-kwargs] [1] is no JSON object", "enable_thinking"}},
    {"chat_with_variables_that_are_no_json",
     generate({"--chat", "--chat-template-kwargs", "enable_thinking=false"}),
     kWrongArguments,
     {"[--chat-template-kwargs]", "not valid JSON", "enable_thinking"}},
    {"chat_whose_messages_are_given",
     {"chat", "@story", "--chat-template-kwargs", R"({"messages": []})"},
     kWrongArguments,
     {"[--chat-template-kwargs]", "messages"}},
    {"variables_without_a_turn",
     generate({"--chat-template-kwargs", "{}"}),
     kWrongArguments,
     {"--chat-template-kwargs", "add --chat"}},
    {"turn_without_a_template",
     generate({"--chat"}),
     kFailed,
     {"story]", "no chat template", "--template FILE"},
     without_template},
    {"system_without_a_turn", generate({"--system", "x"}), kWrongArguments, {"--system", "add --chat"}},
    {"turns_of_a_file",
     {"generate", "@story", "--chat", "--prompts", "@p", "--out", "@o"},
     kWrongArguments,
     {"--chat is for --prompt"}},
};

INSTANTIATE_TEST_SUITE_P(Sampling, Misuses, testing::ValuesIn(kSampling), name_of_misuse);
INSTANTIATE_TEST_SUITE_P(Texts, Misuses, testing::ValuesIn(kTexts), name_of_misuse);
INSTANTIATE_TEST_SUITE_P(Chats, Misuses, testing::ValuesIn(kChats), name_of_misuse);

}  // namespace
}  // namespace heddle
