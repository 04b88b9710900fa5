// Each transcript is what a model of the form writes. Wherever it is cut, the events are the same.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "heddle/base/json_view.h"
#include "heddle/text/calls/call_form.h"

namespace heddle {
namespace {

using Kind = CallEvent::Kind;

const Json& weather_tools() {
  static const Json made = parse_json(
      R"([{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties":
           {"city": {"type": "string"}, "days": {"type": "integer"}, "exact": {"type": "boolean"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "places": {"type": "array"}}}}},
          {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
          {"type": "function", "function": {"name": "python"}}])",
      "tools");
  return made;
}

const Tokenizer& any_tokenizer() {
  static const Tokenizer made = Tokenizer::load(HEDDLE_SOURCE_DIR "/tests/goldens/tokenizer/gpt2");
  return made;
}

// Texts and arguments that were cut are one again.
void append(std::vector<CallEvent>& all, const std::vector<CallEvent>& more) {
  for (const CallEvent& event : more)
    if (!all.empty() && all.back().kind == event.kind && event.kind != Kind::kBegin)
      all.back().text += event.text;
    else
      all.push_back(event);
}

// "text|name(arguments)|..."; a call that the reader did not end has no ")".
std::string told(const std::vector<CallEvent>& events) {
  std::string all;
  for (const CallEvent& event : events) {
    if (event.kind == Kind::kBegin || event.kind == Kind::kText) all += all.empty() ? "" : "|";
    all += event.text + (event.kind == Kind::kBegin ? "(" : event.kind == Kind::kEnd ? ")" : "");
  }
  return all;
}

std::string read_in(const CallForm& form, std::initializer_list<std::string_view> pieces) {
  const auto reader = form.reader(weather_tools());
  std::vector<CallEvent> events;
  for (const std::string_view piece : pieces) append(events, reader->push(piece));
  append(events, reader->flush());
  return told(events);
}

std::string read_calls(const char* chat_template, std::string_view text) {
  const CallForm* const form = find_call_form(std::string("{{ tools }}") + chat_template, any_tokenizer());
  if (!form) return "no form";
  const std::string whole = read_in(*form, {text});
  for (size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(read_in(*form, {text.substr(0, cut), text.substr(cut)}), whole) << form->name << ' ' << cut;
  const auto reader = form->reader(weather_tools());
  std::vector<CallEvent> events;
  for (const char byte : text) append(events, reader->push({&byte, 1}));
  append(events, reader->flush());
  EXPECT_EQ(told(events), whole) << form->name;
  return whole;
}

struct Transcript {
  const char *text, *want;
};

void check_all(const char* chat_template, std::initializer_list<Transcript> transcripts) {
  for (const auto& [text, want] : transcripts) EXPECT_EQ(read_calls(chat_template, text), want);
}

TEST(Calls, OfHermes) {
  check_all(
      "<tool_call>",
      {{"<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>",
        R"(weather({"city": "Paris"}))"},
       {"I look.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Zürich "
        "\\\"}\"}}\n</tool_call>\n"
        "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n Done.",
        R"(I look.|weather({"city": "Zürich \"}"})|now({})|Done.)"},
       {"<tool_call>{\"arguments\": {\"days\": [1, 2.5e3]}, \"name\": \"weather\"}</tool_call>",
        R"(weather({"days": [1, 2.5e3]}))"},
       {"<tool_call>{\"name\": \"now\"}</tool_call>", "now({})"},
       {"<tool_call>[{\"name\": \"now\", \"arguments\": {}}, {\"name\": \"now\", \"arguments\": {\"a\": "
        "null}}]"
        "</tool_call>",
        R"(now({})|now({"a": null}))"},
       {"<tool_call>{\"name\": \"now\", \"arguments\": \"{\\\"a\\\": 1}\", \"id\": 7}</tool_call>x",
        R"(now({"a": 1})|x)"},
       // Cut by the limit of tokens.
       {"<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Pa", R"(weather({"city": "Pa))"},
       // No JSON: it goes on to the mark.
       {"<tool_call>{\"name\": \"now\", \"arguments\": {'a': 1}}</tool_call>x", "now({'a': 1}})|x"},
       {"<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": 1</tool_call>x", R"(now({"a": 1)|x)"},
       {"<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": 1}</tool_call>x", R"(now({"a": 1})|x)"}});
}

TEST(Calls, LeaveOtherTextAsItIs) {
  for (const char* text :
       {"", " ", "Hello \n", "<tool_call>", " <tool_call>\n", "a < b and <tool_cal", "<tool_call>{\"name\": ",
        "<tool_call>{\"name\": \"now\", \"arguments\": ", "<tool_call>{\"name\": 3} </tool_call> ",
        "<tool_call>no object</tool_call>", "<tool_call>{\"name\": \"now\", \"arguments\": 3}</tool_call>",
        "<tool_call>{\"name\": \"\", \"arguments\": {}}", "</tool_call>", "ein Zeichen: \xE2\x82"})
    EXPECT_EQ(read_calls("<tool_call>", text), text);
  EXPECT_EQ(read_calls("<tool_call>", "<tool_call> <tool_call>{\"name\": \"now\"}</tool_call>"),
            "<tool_call>|now({})");
}

TEST(Calls, ComeAsEarlyAsTheyAreCertain) {
  const auto reader = find_call_form("tools <tool_call>", any_tokenizer())->reader(weather_tools());
  const auto push = [&](std::string_view text) { return reader->push(text); };
  EXPECT_EQ(push("Hi <"), (std::vector<CallEvent>{{Kind::kText, "Hi"}}));
  EXPECT_EQ(push("b> "), (std::vector<CallEvent>{{Kind::kText, " <b>"}}));
  EXPECT_EQ(push("<tool_call>{\"name\": \"now\""), std::vector<CallEvent>{});
  EXPECT_EQ(push(", \"arguments\": {\"a"),
            (std::vector<CallEvent>{{Kind::kBegin, "now"}, {Kind::kArguments, "{\"a"}}));
  EXPECT_EQ(push("\":1}"), (std::vector<CallEvent>{{Kind::kArguments, "\":1}"}, {Kind::kEnd}}));
  EXPECT_EQ(push("}\n</tool_"), std::vector<CallEvent>{});
  EXPECT_EQ(push("cal"), std::vector<CallEvent>{});
  EXPECT_EQ(reader->flush(), (std::vector<CallEvent>{{Kind::kText, "</tool_cal"}}));
}

TEST(Calls, OfLlama) {
  check_all(
      "<|python_tag|>",
      {{R"({"name": "weather", "parameters": {"city": "Paris"}})", R"(weather({"city": "Paris"}))"},
       {R"( {"type": "function", "name": "now", "parameters": {}}; {"name": "now", "parameters": {}})",
        "now({})|now({})"},
       {R"(<|python_tag|>{"name": "other", "parameters": {"a": [{}]}})", R"(other({"a": [{}]}))"},
       {"I look.\n<|python_tag|>{\"name\": \"now\", \"parameters\": {}} Done.", "I look.|now({})|Done."},
       {"<|python_tag|>print(\"ü\")\n", R"(python({"code": "print(\"ü\")\n"}))"},
       {R"({"name": "Bob", "age": 3})", R"({"name": "Bob", "age": 3})"},
       {R"({"name": "Bob", "parameters": {}})", R"({"name": "Bob", "parameters": {}})"},
       {R"({"name": "now"})", R"({"name": "now"})"},
       {R"(Call {"name": "now", "parameters": {}})", R"(Call {"name": "now", "parameters": {}})"}});
}

TEST(Calls, OfMistral) {
  check_all(
      "[TOOL_CALLS]",
      {{R"([TOOL_CALLS] [{"name": "weather", "arguments": {"days": 2}, "id": "abcdefghi"}, )"
        R"({"name": "now", "arguments": {}}])",
        R"(weather({"days": 2})|now({}))"},
       {R"(I look. [TOOL_CALLS]weather[ARGS]{"city": "Paris"}[TOOL_CALLS]now[CALL_ID]123456789[ARGS]{})",
        R"(I look.|weather({"city": "Paris"})|now({}))"},
       {R"([TOOL_CALLS]now{"a": 1})", R"(now({"a": 1}))"},
       {R"([TOOL_CALLS]now[ARGS]{"a": x[TOOL_CALLS]now[ARGS]{})", R"(now({"a": x)|now({}))"},
       {"[TOOL_CALLS] none", "[TOOL_CALLS] none"},
       {"[[TOOL_CALLS][TOOL", "[[TOOL_CALLS][TOOL"}});
}

TEST(Calls, OfQwenCoder) {
  check_all(
      "<function= <parameter=",
      {{"I look.\n<tool_call>\n<function=weather>\n<parameter=city>\nNew "
        "\"York\"\n</parameter>\n<parameter=days>\n3\n"
        "</parameter>\n<parameter=exact>\nTrue\n</parameter>\n</function>\n</tool_call>",
        R"(I look.|weather({"city": "New \"York\"", "days": 3, "exact": true}))"},
       {"<function=weather>\n<parameter=city>\n\nline\n\n</parameter>\n</function>\n</tool_call>\n<tool_call>"
        "<function=now></function></tool_call>",
        R"(weather({"city": "\nline\n"})|now({}))"},
       {"<function=weather>\n<parameter=note>\nnull\n</parameter><parameter=places>[\"a\", 1]</parameter>"
        "<parameter=days>many</parameter><parameter=other>2</parameter></function>",
        R"(weather({"note": null, "places": ["a", 1], "days": "many", "other": 2}))"},
       {"<function=weather>\n<parameter=note>\nnul\n</parameter></tool_call>x",
        R"(weather({"note": "nul"})|x)"},
       {"<tool_call>\n<function=weather>\n<parameter=city>\nPar</para", R"(weather({"city": "Par</para))"},
       {"<tool_call>\n<function=weather>\n<parameter=ci", "weather()"},
       {"<function=f", "<function=f"},
       {"<function=now> or", "<function=now> or"}});
}

TEST(Calls, OfOtherTags) {
  check_all(
      "<arg_key> <arg_value>",
      {{"<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>days</arg_key>\n"
        "<arg_value>3</arg_value>\n</tool_call>\n<tool_call>now</tool_call>",
        R"(weather({"city": "Paris", "days": 3})|now({}))"},
       {"<tool_call>now or</tool_call>", "<tool_call>now or</tool_call>"}});
  check_all("<minimax:tool_call>", {{"<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter "
                                     "name=\"city\">Paris</parameter>\n</invoke>\n"
                                     "<invoke name=\"now\">\n</invoke>\n</minimax:tool_call>",
                                     R"(weather({"city": "Paris"})|now({}))"}});
  check_all("<seed:tool_call>", {{"<seed:tool_call>\n<function=weather>\n<parameter=city>Paris</parameter>\n"
                                  "</function>\n</seed:tool_call>",
                                  R"(weather({"city": "Paris"}))"}});
}

TEST(Calls, OfDeepSeek) {
  check_all(
      "<｜tool▁call▁begin｜>",
      {{"I "
        "look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"city\": "
        "\"Paris\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        R"(I look.|weather({"city": "Paris"})|now({}))"},
       {"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜>"
        "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        R"(now({"a": 1})|now({}))"},
       {"<｜tool▁calls▁begin｜> none", "<｜tool▁calls▁begin｜> none"}});
}

TEST(Calls, OfHarmony) {
  check_all("<|channel|> <|call|>",
            {{"<|channel|>commentary to=functions.weather json<|message|>{\"city\": \"Paris\"}<|call|>",
              R"(weather({"city": "Paris"}))"},
             {"Hi<|channel|>commentary to=functions.now<|message|>{}<|call|>", "Hi|now({})"},
             {"<|channel|>commentary<|message|>{}", "<|channel|>commentary<|message|>{}"}});
}

TEST(Calls, OfGemma) {
  check_all("<start_function_call>",
            {{"<start_function_call>call:weather{city:<escape>New \"York\"<escape>,days:3}<end_function_call>"
              "<start_function_call>call:now{}<end_function_call>",
              R"(weather({"city": "New \"York\"", "days": 3})|now({}))"},
             {"<start_function_call>call:now{a:<escape>b", R"(now({"a": "b))"},
             {"<start_function_call>call:now{a:1<end_function_call>x", R"(now({"a": 1)|x)"}});
  check_all(
      "<|tool_call> <tool_call|>",
      {{"<|tool_call>call:weather{places:[<|\"|>a<|\"|>,{b:true}],city:New York , exact : false}<tool_call|>",
        R"(weather({"places": ["a", {"b": true}], "city": "New York", "exact": false}))"}});
}

TEST(Calls, OfListsOfJson) {
  const std::pair<const char*, const char*> cases[] = {
      {"<|tool_call|>", "<|tool_call|>[{\"name\": \"now\", \"arguments\": {\"a\": 1}}]"},
      {"<TOOLCALL>", "<TOOLCALL>[{\"name\": \"now\", \"arguments\": {\"a\": 1}}]</TOOLCALL>"},
      {"<|START_ACTION|>",
       "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"now\", \"parameters\": "
       "{\"a\": 1}}\n]<|END_ACTION|>"}};
  for (const auto& [chat_template, text] : cases)
    EXPECT_EQ(read_calls(chat_template, text), R"(now({"a": 1}))");
}

// A reader takes what the pieces make a model write.
TEST(Calls, AreWrittenAsTheyAreRead) {
  for (const CallForm& form : call_forms()) {
    if (!form.pieces) continue;
    const CallPieces pieces = form.pieces("weather");
    const bool has_tags = pieces.style == CallPieces::Style::kTags;
    const auto& [before, between, after] = pieces.tags;
    const std::string arguments =
        has_tags ? fmt::format("{0}city{1}Paris{2}{0}days{1}3{2}", before, between, after)
                 : R"({"city": "Paris", "days": 3})";
    EXPECT_EQ(read_in(form, {pieces.begin + arguments + pieces.end}),
              R"(weather({"city": "Paris", "days": 3}))")
        << form.name;
  }
}

TEST(Calls, HaveNoFormInOtherTemplates) {
  EXPECT_EQ(find_call_form("{{ messages }}", any_tokenizer()), nullptr);
  EXPECT_EQ(find_call_form("{{ messages }} <tool_call>", any_tokenizer()), nullptr) << "it reads no tools";
  EXPECT_EQ(find_call_form("{{ tools }}", any_tokenizer()), nullptr);
}

}  // namespace
}  // namespace heddle
