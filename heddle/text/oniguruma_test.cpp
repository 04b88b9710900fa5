#include "heddle/text/oniguruma.h"

#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/json_to.h"
#include "heddle/text/unicode/regex.h"
#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

const std::string kRegexGoldens = HEDDLE_SOURCE_DIR "/tests/goldens/tokenizer/";

Regex compile(std::string_view pattern) {
  return Regex(pcre2_from_oniguruma(pattern));
}

// The pieces of a text after Split with the behaviour "isolated".
std::vector<std::string> pieces(const Regex& regex, const std::string& text) {
  std::vector<std::string> parts;
  const auto add = [&](size_t begin, size_t end) {
    if (begin < end) parts.push_back(text.substr(begin, end - begin));
  };
  Regex::Scratch scratch;
  size_t at = 0;
  regex.for_each_match(text, scratch, [&](Regex::Span match) {
    add(at, match.begin);
    add(match.begin, match.end);
    at = match.end;
  });
  add(at, text.size());
  return parts;
}

TEST(Oniguruma, SplitsAsTokenizersDoes) {
  std::ifstream cases(kRegexGoldens + "patterns.jsonl");
  std::string line;
  int count = 0;
  while (std::getline(cases, line)) {
    const Json row = parse_json(line, "patterns");
    const std::string &pattern = row.at("pattern").as_string(), &text = row.at("text").as_string();
    const auto got = pieces(compile(pattern), text);
    EXPECT_EQ(got, json_to<std::vector<std::string>>(row.at("pieces")))
        << pattern << " on " << brief(row.at("text")) << " as " << pcre2_from_oniguruma(pattern);
    ++count;
  }
  EXPECT_GT(count, 600);
}

// No set takes a pass over all characters.
TEST(Oniguruma, ReadsManySetsInTime) {
  std::string pattern = "[";
  for (int i = 0; i < 2000; ++i) {
    pattern += "[[";
    for (int rest = i + 1; rest > 0; rest /= 4) pattern += std::string("\\") + "dhWw"[rest % 4];
    pattern += "]&&[^\\s[:punct:]]]";
  }
  const Regex regex = compile(pattern + "]");
  Regex::Scratch scratch;
  EXPECT_TRUE(regex.find("漢", 0, scratch));
  EXPECT_FALSE(regex.find(" \n!", 0, scratch));
}

// Fails when PCRE2 has other Unicode tables than those that the additions were made for.
TEST(Oniguruma, KnowsTheSameCharacters) {
  std::string every;
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c < 0xD800 || c >= 0xE000) append_utf8(c, every);
  }
  const Json properties = load_json(kRegexGoldens + "properties.json");
  for (const Json& row : properties.items()) {
    const std::string& pattern = row.at("pattern").as_string();
    const Regex regex = compile(pattern);
    Regex::Scratch scratch;
    uint64_t count = 0, sum = 0;
    regex.for_each_match(every, scratch, [&](Regex::Span match) {
      const Utf8Char c = first_char(std::string_view(every).substr(match.begin));
      EXPECT_EQ(match.end, match.begin + c.size);
      ++count;
      sum += c.code_point;
    });
    EXPECT_EQ(count, json_to<uint64_t>(row.at("count"))) << pattern;
    EXPECT_EQ(sum, json_to<uint64_t>(row.at("sum"))) << pattern;
  }
}

// Ranges come from tables of their own where a class has sets in it, as [[\\w]] does.
TEST(Oniguruma, KnowsTheSameCharactersByRanges) {
  std::string every;
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c < 0xD800 || c >= 0xE000) append_utf8(c, every);
  }
  for (const char* set :
       {R"(\p{L})",  R"(\p{Lu})", R"(\p{Ll})", R"(\p{Lt})", R"(\p{Lm})",   R"(\p{Lo})", R"(\p{M})",
        R"(\p{Mn})", R"(\p{Mc})", R"(\p{Me})", R"(\p{N})",  R"(\p{Nd})",   R"(\p{Nl})", R"(\p{No})",
        R"(\p{P})",  R"(\p{Pc})", R"(\p{Pd})", R"(\p{Ps})", R"(\p{Pe})",   R"(\p{Pi})", R"(\p{Pf})",
        R"(\p{Po})", R"(\p{S})",  R"(\p{Sm})", R"(\p{Sc})", R"(\p{Sk})",   R"(\p{So})", R"(\p{Z})",
        R"(\p{Zs})", R"(\p{Zl})", R"(\p{Zp})", R"(\w)",     R"(\p{Word})", R"(\d)",     R"(\h)",
        R"(\s)",     R"(\S)"}) {
    const Regex as_class = compile(fmt::format("[{}]++", set)),
                as_ranges = compile(fmt::format("[[{}]]++", set));
    Regex::Scratch scratch;
    for (size_t at = 0; at < every.size();) {
      const auto run = as_class.find(every, at, scratch), same = as_ranges.find(every, at, scratch);
      ASSERT_TRUE(run.has_value() == same.has_value()) << set;
      if (!run) break;
      ASSERT_EQ(run->begin, same->begin) << set;
      EXPECT_EQ(run->end, same->end) << set;
      at = std::min(run->end, same->end);
    }
  }
}

ErrorCode error_code(std::string_view pattern) {
  try {
    compile(pattern);
  } catch (const Error& error) {
    EXPECT_TRUE(std::string_view(error.what()).starts_with("[pattern] ")) << error.what();
    return error.code();
  }
  ADD_FAILURE() << "accepted: " << pattern;
  return ErrorCode::kInternal;
}

TEST(Oniguruma, RefusesWhatItDoesNotTranslate) {
  for (const char* pattern : {R"((a)\1)",   R"(\k<n>)",      R"(\g<0>)",        R"(\X)",
                              R"(\R)",      R"(\N)",         R"(\K)",           R"(\012)",
                              R"(\xe9)",    R"(\pL)",        R"(\p{Klingon})",  R"(\p{InKlingon})",
                              "[[:foo:]]",  "[]a]",          "(?i:[a[b]])",     R"((?i:[\P{L}]))",
                              "(?<n>a)",    "(?x:a)",        "a(?i)b",          "(?i:ss)",
                              "(?i:ST)",    "(?i:\xC3\xA9)", "(?i:[\xC3\xA9])", R"((?i:\p{L}))",
                              R"((?i:\w))", R"((?i:[\Sk]))", "(?~a)",           "(?{1})",
                              "a{10000}",   "a{3,1}"}) {
    EXPECT_EQ(error_code(pattern), ErrorCode::kUnsupported) << pattern;
  }
}

TEST(Oniguruma, RefusesWhatIsNoPattern) {
  for (const char* pattern : {"(",
                              ")",
                              "a)",
                              "(?:a",
                              "[a",
                              "[",
                              "\\",
                              "*a",
                              "a|*",
                              "^*",
                              "(?=a)*",
                              "(*)",
                              "[z-a]",
                              R"([a-\d])",
                              R"(\p{L)",
                              R"(\x{})",
                              R"(\x{110000})",
                              R"(\x{d800})",
                              R"(\u12)",
                              "\xFF",
                              "(?<=a*)b"}) {
    EXPECT_EQ(error_code(pattern), ErrorCode::kInvalidArgument) << pattern;
  }
}

TEST(Oniguruma, LimitsThePattern) {
  EXPECT_EQ(error_code(std::string(1 << 17, 'a')), ErrorCode::kUnsupported);
  EXPECT_EQ(error_code(std::string(20'000, '(') + std::string(20'000, ')')), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_code(std::string(300, '[') + "a" + std::string(300, ']')), ErrorCode::kUnsupported);
  EXPECT_EQ(error_code("a" + std::string(60'000, '*')), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error_code("(?:(?:a{9999}){9999}){9999}"), ErrorCode::kInvalidArgument);
}

TEST(Regex, EndsACatastrophicMatch) {
  const Regex regex = compile("(?:a|aa)+$");
  Regex::Scratch scratch;
  const std::string text = std::string(100, 'a') + "!";
  try {
    regex.find(text, 0, scratch);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_NE(std::string_view(error.what()).find("match limit"), std::string_view::npos) << error.what();
  }
  EXPECT_TRUE(regex.find("aaa", 0, scratch));
}

TEST(Regex, MatchesDeepGroups) {  // deeper than the stack of compiled code
  const Regex regex = compile("(?:a|b)*c");
  Regex::Scratch scratch;
  std::string text(300'000, 'a');
  EXPECT_FALSE(regex.find(text.substr(0, 100), 0, scratch));
  const auto match = regex.find(text + "c", 0, scratch).value_or(Regex::Span{});
  EXPECT_EQ(match.end, 300'001u);
}

TEST(Regex, LiteralTextMatchesItself) {
  const std::string text = "a.b*(c)[\\d]{2}é🙂 \n";
  const Regex regex(pcre2_from_text(text));
  Regex::Scratch scratch;
  const auto match = regex.find("x" + text, 0, scratch).value_or(Regex::Span{});
  EXPECT_EQ(match.begin, 1u);
  EXPECT_EQ(match.end, 1 + text.size());
}

}  // namespace
}  // namespace heddle
