#include "heddle/text/chat_template.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"

namespace heddle {
namespace {

const std::string kChatGoldens = HEDDLE_SOURCE_DIR "/tests/goldens/chat/";
const ChatTemplate::Variables kTokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};

// The time in scripts/goldens/make_chats.py.
std::tm golden_time() {
  std::tm time = {};
  time.tm_year = 125, time.tm_mon = 2, time.tm_mday = 9, time.tm_hour = 14, time.tm_min = 5, time.tm_sec = 7;
  time.tm_wday = 0, time.tm_yday = 67;
  return time;
}

const Json kHi = Json::array({Json::object({{"role", "user"}, {"content", "hi"}})});

std::string render(std::string_view text, const Json& request) {
  const ChatTemplate chat = ChatTemplate::parse(text, "t.jinja", kTokens);
  return chat.render_json(request.at("messages"),
                          {.add_generation_prompt = request.at("add_generation_prompt").as_bool(),
                           .extra = &request.at("extra"),
                           .now = golden_time(),
                           .budget = uint64_t{1} << 24});
}

std::string render(std::string_view text) {
  const Json request =
      Json::object({{"messages", kHi}, {"add_generation_prompt", true}, {"extra", Json::object()}});
  return render(text, request);
}

std::string error_of(std::string_view text) {
  try {
    return "no error but " + render(text);
  } catch (const Error& error) {
    EXPECT_NE(error.code(), ErrorCode::kInternal);
    return error.what();
  }
}

TEST(ChatTemplate, KnowsTheVariablesThatItNames) {
  const ChatTemplate chat = ChatTemplate::parse("{% if enable_thinking %}{{ tools|length }}{% endif %}", "t");
  EXPECT_TRUE(chat.unread(parse_json(R"({"enable_thinking": 1, "tools": []})", "")).empty());
  EXPECT_EQ(chat.unread(parse_json(R"({"enable": 1, "effort": 1, "enable_thinkin": 1})", "")),
            (std::vector<std::string>{
                "the chat template reads no \"enable\"; did you mean enable_thinking?",
                "the chat template reads no \"effort\"",
                "the chat template reads no \"enable_thinkin\"; did you mean enable_thinking?"}));
}

TEST(ChatTemplate, EqualsTransformers) {
  std::ifstream cases(kChatGoldens + "cases.jsonl");
  std::string line;
  int count = 0;
  while (std::getline(cases, line)) {
    const Json request = parse_json(line, "cases.jsonl");
    const std::string text =
        read_file(kChatGoldens + "templates/" + request.at("template").as_string() + ".jinja");
    if (request.at("text").is_null()) {
      EXPECT_THROW(render(text, request), Error) << line;
    } else {
      EXPECT_EQ(render(text, request), request.at("text").as_string()) << line;
    }
    ++count;
  }
  EXPECT_EQ(count, 144);
}

// Constructs of Jinja that this subset lacks are reported as unsupported. There are few of them.
TEST(ChatTemplate, HasJinjasConstructs) {
  const Json variables = load_json(kChatGoldens + "variables.json");
  const Json request =
      Json::object({{"messages", kHi}, {"add_generation_prompt", true}, {"extra", variables}});
  std::ifstream cases(kChatGoldens + "constructs.jsonl");
  std::string line;
  int equal = 0, unsupported = 0;
  while (std::getline(cases, line)) {
    const Json expected = parse_json(line, "constructs.jsonl");
    const auto text = expected.at("template").as_string();
    try {
      const std::string got = render(text, request);
      EXPECT_EQ(Json(got), expected.at("text")) << line;
      ++equal;
    } catch (const Error& error) {
      if (!expected.at("text").is_null()) {
        EXPECT_EQ(error.code(), ErrorCode::kUnsupported) << line << "\n" << error.what();
        ++unsupported;
      }
      EXPECT_TRUE(std::string_view(error.what()).starts_with("[t.jinja] line ")) << line << "\n"
                                                                                 << error.what();
    }
  }
  EXPECT_EQ(equal, 784);
  EXPECT_EQ(unsupported, 9);
}

TEST(ChatTemplate, NamesLineAndConstruct) {
  const std::pair<const char*, const char*> wrong[] = {
      {"a\nb\n{{ x | nope }}", "line 3: the filter 'nope' is not known"},
      {"a\nb\n{{ x | urlize }}", "line 3: the filter 'urlize' is not supported"},
      {"\n{% include 'x' %}", "line 2: the block 'include' asks for another template"},
      {"\n{% do x %}", "line 2: the block 'do' is not expected here"},
      {"{{ x is nope }}", "line 1: the test 'nope' is not known"},
      {"{% if x %}\n\n{{ y }}", "line 3: the end of the template where {% endif %} is expected"},
      {"\n\n{{ a.b }}", "line 3: 'a' is undefined"},
      {"{% for m in messages %}\n{{ raise_exception('not ' ~ m.role) }}{% endfor %}",
       "line 2: the template refuses the conversation: not user"},
      {"{{ 1 +\n }}", "line 2: the end of the tag where an expression is expected"},
      {"{{ messages.append(1) }}", "line 1: the method 'append' would change a list"},
      {"{{ 'a\n}}", "line 1: a string has no end"},
      {"{% for x in messages %}{{ loop([]) }}{% endfor %}", "line 1: a loop is called; only a loop with"},
      {"{{ 9223372036854775807 ** 3 }}", "line 1: 9223372036854775807 ** 3 has no 128 bits' room"},
  };
  for (const auto& [text, message] : wrong) {
    EXPECT_TRUE(error_of(text).starts_with(std::string("[t.jinja] ") + message)) << error_of(text);
  }
}

// A construct that is not supported is refused only where a conversation reaches it.
TEST(ChatTemplate, RefusesWhatIsReached) {
  for (const char* text :
       {"{% if tools %}{{ x | nope }}{% endif %}ok", "{% if tools %}{{ x is nope }}{% endif %}ok",
        "{% if tools %}{% include 'x' %}{% endif %}ok", "{% if tools %}{% import 'x' as y %}{% endif %}ok",
        "{% if tools %}{% autoescape true %}{% endautoescape %}{% endif %}ok",
        "{% if tools %}{{ [] | random }}{{ lipsum() }}{% endif %}ok"}) {
    EXPECT_EQ(render(text), "ok") << text;
  }
}

TEST(ChatTemplate, KeepsTheDigitsOfLargeNumbers) {
  const Json request =
      Json::object({{"messages", kHi},
                    {"add_generation_prompt", true},
                    {"extra", parse_json(R"({"n": 18446744073709551616, "u": 18446744073709551615,
                                "h": -1000000000000000000000000000000000000000000000000000000000007})",
                                         "extra")}});
  EXPECT_EQ(render("{{ n }} {{ u }} {{ h }}", request),
            "18446744073709551616 18446744073709551615 "
            "-1000000000000000000000000000000000000000000000000000000000007");
  EXPECT_EQ(render("{{ {'id': n, u: h} | tojson }}", request),
            "{\"id\": 18446744073709551616, \"18446744073709551615\": "
            "-1000000000000000000000000000000000000000000000000000000000007}");
  EXPECT_EQ(render("{{ n + u }} {{ n > u }} {{ h < 0 }}", request), "36893488147419103231 True True");
  EXPECT_THROW(render("{{ h + 1 }}", request), Error);
}

TEST(ChatTemplate, IsBounded) {
  const std::string growing =
      "{% set n = namespace(x='aaaaaaaa') %}{% for i in range(99999) %}{% set n.x = n.x + n.x %}{% endfor %}";
  const std::string looping =
      "{% for a in range(99999) %}{% for b in range(99999) %}{{ '' }}{% endfor %}{% endfor %}";
  const std::string calling = "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}";
  const std::string wide =
      "{% set n = namespace(x=[1]) %}{% for i in range(90) %}{% set n.x = [n.x, n.x] %}{% endfor %}";
  EXPECT_NE(error_of(growing).find("units of work"), std::string::npos);
  EXPECT_NE(error_of(looping).find("units of work"), std::string::npos);
  EXPECT_NE(error_of(calling).find("levels"), std::string::npos);
  EXPECT_NE(error_of(wide + "{{ n.x }}").find("units of work"), std::string::npos);
  EXPECT_NE(error_of(wide + "{{ n.x == [n.x[0], n.x[1]] }}{{ n.x | tojson }}").find("units"),
            std::string::npos);
  const std::string deep =
      "{% set n = namespace(x=1) %}{% for i in range(999) %}{% set n.x = [n.x] %}{% endfor %}";
  EXPECT_NE(error_of(deep).find("levels deep"), std::string::npos);
  EXPECT_NE(error_of("{{ " + std::string(100'000, '(') + "1" + std::string(100'000, ')') + " }}")
                .find("nested too deeply"),
            std::string::npos);
  EXPECT_NE(error_of("{{ 1" +
                     [] {
                       std::string sum;
                       for (int i = 0; i < 100'000; ++i) sum += "+1";
                       return sum;
                     }() +
                     " }}")
                .find("levels"),
            std::string::npos);
  EXPECT_NE(error_of("{{ 'x' * 99999999999 }}").find("units of work"), std::string::npos);
  const std::string recursive = "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}";
  const std::string blocks = "{% block a %}{{ self.a() }}{% endblock %}";
  for (const std::string& text : {recursive, blocks})
    EXPECT_NE(error_of(text).find("levels"), std::string::npos);
  for (const char* wide_text : {"'%999999s' % 1", "'{:999999}'.format(1)", "'x'.ljust(999999)",
                                "'1'.zfill(999999)", "'x' | center(999999)", "'\\t'.expandtabs(999999)"}) {
    const std::string text =
        "{% for i in range(9999) %}{% set x = " + std::string(wide_text) + " %}{% endfor %}";
    EXPECT_NE(error_of(text).find("units of work"), std::string::npos) << text;
  }
}

TEST(ChatTemplate, TakesPlainMessages) {
  const ChatTemplate chat =
      ChatTemplate::parse("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", "t.jinja");
  const ChatMessage messages[] = {{"user", "a\xFF"}, {"assistant", "b"}};
  EXPECT_EQ(chat.render(messages), "user: a\uFFFD\nassistant: b\n");
  EXPECT_THROW(chat.render(std::span<const ChatMessage>()), Error);
}

class Folder : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  void write(const std::string& name, const std::string& text) const {
    write_file(folder + "/" + name, text);
  }
  std::string render(const Json& extra = Json::object()) const {
    return ChatTemplate::load(folder).render_json(kHi, {.extra = &extra});
  }

  const std::string folder = testing::TempDir() + "heddle_chat_template";
};

TEST_F(Folder, HasATemplateInTheConfig) {
  EXPECT_FALSE(ChatTemplate::exists(folder));
  write("tokenizer_config.json",
        R"({"bos_token": {"content": "<a>", "lstrip": false}, "eos_token": "<b>", "pad_token": null,
            "chat_template": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ pad_token is defined }}"})");
  EXPECT_TRUE(ChatTemplate::exists(folder));
  EXPECT_EQ(render(), "<a>hi<b>False");
  write("chat_template.jinja", "file {{ eos_token }}\n");  // preferred to the config's
  EXPECT_EQ(render(), "file <b>");
}

TEST_F(Folder, HasSeveralTemplates) {
  write("tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "plain"},
                                                       {"name": "tool_use", "template": "tools"}]})");
  EXPECT_EQ(render(), "plain");
  EXPECT_EQ(render(Json::object({{"tools", Json::array({Json::object({{"name", "f"}})})}})), "tools");
  EXPECT_EQ(render(Json::object({{"tools", nullptr}})), "plain");
  write("tokenizer_config.json", R"({"chat_template": [{"name": "other", "template": "x"}]})");
  EXPECT_THROW(render(), Error);
  write("tokenizer_config.json", R"({"chat_template": {"default": "plain", "tool_use": "tools"}})");
  EXPECT_EQ(render(), "plain");
  EXPECT_EQ(render(Json::object({{"tools", Json::array()}})), "tools");
  write("tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "first"},
                                                       {"name": "default", "template": "last"}]})");
  EXPECT_EQ(render(), "last");
}

TEST(ChatTemplate, GivesReasoningItsNames) {
  const ChatTemplate chat = ChatTemplate::parse(
      "{% for m in messages %}{{ m.role }} {{ m.thinking is defined }} {{ m.reasoning_content }};{% endfor "
      "%}",
      "t");
  const ChatMessage said[] = {{"user", "hi"}, {"assistant", "Hello", "hm"}};
  EXPECT_EQ(chat.render(said), "user False ;assistant True hm;");
  EXPECT_EQ(chat.text().substr(0, 6), "{% for");
  EXPECT_EQ(ChatTemplate().text(), "");
}

TEST_F(Folder, MayHaveNone) {
  EXPECT_THROW(render(), Error);
  write("tokenizer_config.json", "{}");
  EXPECT_FALSE(ChatTemplate::exists(folder));
  EXPECT_THROW(render(), Error);
  write("tokenizer_config.json", R"({"chat_template": "\n{{ x | nope }}"})");
  try {
    render();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("tokenizer_config.json: chat_template] line 2: "),
              std::string::npos);
  }
}

}  // namespace
}  // namespace heddle
