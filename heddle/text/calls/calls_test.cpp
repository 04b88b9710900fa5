// Each transcript is what a model of the form writes. Wherever it is cut, the events are the same.
#include <string>

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
          {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}])",
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

TEST(Calls, AreWrittenAsTheyAreRead) {
  const CallForm* const form = find_call_form("tools <tool_call>", any_tokenizer());
  const CallPieces pieces = form->pieces("weather");
  EXPECT_EQ(read_calls("<tool_call>", pieces.begin + R"({"city": "Paris"})" + pieces.end),
            R"(weather({"city": "Paris"}))");
}

TEST(Calls, HaveNoFormInOtherTemplates) {
  EXPECT_EQ(find_call_form("{{ messages }}", any_tokenizer()), nullptr);
  EXPECT_EQ(find_call_form("{{ messages }} <tool_call>", any_tokenizer()), nullptr) << "it reads no tools";
  EXPECT_EQ(find_call_form("{{ tools }}", any_tokenizer()), nullptr);
}

}  // namespace
}  // namespace heddle
