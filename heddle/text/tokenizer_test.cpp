#include "heddle/text/tokenizer.h"

#include <atomic>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/json_to.h"

namespace heddle {
namespace {

const std::string kGoldens = HEDDLE_SOURCE_DIR "/tests/goldens/tokenizer/";

Tokenizer golden(const std::string& name) {
  return Tokenizer::load(kGoldens + name + "/tokenizer.json");
}

// A byte-level tokenizer of the letters a to c with the merges that a test needs.
Json small_file() {
  return parse_json(R"({
    "version": "1.0", "added_tokens": [], "normalizer": null, "post_processor": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
    "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "byte_fallback": false,
              "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5, "aa": 6, "aaaa": 7},
              "merges": ["b c", "a b", "a bc", "a a", "aa aa"]}})",
                    "small");
}

Tokenizer parse(const Json& file) {
  return Tokenizer::parse(file.dump(), "tokenizer.json");
}

std::vector<int32_t> encode(const Json& file, std::string_view text) {
  return parse(file).encode(text, true);
}

std::string error_of(const Json& file) {
  try {
    parse(file);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, EqualsTokenizers) {
  const Tokenizer tokenizer = golden(GetParam());
  std::ifstream cases(kGoldens + GetParam() + "/cases.jsonl");
  std::string line;
  int count = 0;
  while (std::getline(cases, line)) {
    const Json expected = parse_json(line, "cases");
    const std::string& text = expected.at("text").as_string();
    const auto ids = json_to<std::vector<int32_t>>(expected.at("ids"));
    EXPECT_EQ(tokenizer.encode(text, true), ids) << line;
    EXPECT_EQ(tokenizer.encode(text, false), json_to<std::vector<int32_t>>(expected.at("plain"))) << line;
    EXPECT_EQ(tokenizer.decode(ids, false), expected.at("decoded").as_string()) << line;
    EXPECT_EQ(tokenizer.decode(ids, true), expected.at("skipped").as_string()) << line;
    ++count;
  }
  EXPECT_GE(count, 120);
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, Golden,
                         testing::Values("gpt2", "llama3", "odd", "qwen", "llama2", "mistral", "gemma",
                                         "worded", "bert", "xlmr", "t5", "words", "clip", "ctc", "prefixed"));

TEST(Tokenizer, FindsTokensAndIds) {
  const Tokenizer tokenizer = golden("llama3");
  EXPECT_EQ(tokenizer.vocab_size(), 915u);
  EXPECT_EQ(tokenizer.token_to_id("<|begin_of_text|>"), 900);
  EXPECT_EQ(tokenizer.id_to_token(900), "<|begin_of_text|>");
  EXPECT_TRUE(tokenizer.is_special(900));
  EXPECT_FALSE(tokenizer.is_special(0));
  EXPECT_EQ(tokenizer.token_to_id("no such token"), std::nullopt);
  for (int32_t id : {-1, 915, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(tokenizer.id_to_token(id), std::nullopt);
    EXPECT_FALSE(tokenizer.is_special(id));
    EXPECT_EQ(tokenizer.decode(std::vector{id}, false), "");
  }
}

TEST(Tokenizer, MergesByRankThenFromTheLeft) {
  const Json file = small_file();
  EXPECT_EQ(encode(file, "abc"), (std::vector<int32_t>{5}));  // b c first, then a bc
  EXPECT_EQ(encode(file, "ab"), (std::vector<int32_t>{3}));
  EXPECT_EQ(encode(file, "aaa"), (std::vector<int32_t>{6, 0}));
  EXPECT_EQ(encode(file, "aaaaaa"), (std::vector<int32_t>{7, 6}));
  EXPECT_EQ(encode(file, ""), (std::vector<int32_t>{}));
}

TEST(Tokenizer, LeavesOutOrNamesUnknownBytes) {
  Json file = small_file();
  EXPECT_EQ(encode(file, "axxb"), (std::vector<int32_t>{3}));
  file["model"]["vocab"]["?"] = 8;
  file["model"]["unk_token"] = "?";
  EXPECT_EQ(encode(file, "axxb"), (std::vector<int32_t>{0, 8, 8, 1}));
  file["model"]["fuse_unk"] = true;
  EXPECT_EQ(encode(file, "axxb"), (std::vector<int32_t>{0, 8, 1}));
}

TEST(Tokenizer, RefusesUnknownBytesWithoutTheirToken) {
  Json file = small_file();
  file["model"]["unk_token"] = "<none>";
  EXPECT_EQ(encode(file, "ab"), (std::vector<int32_t>{3}));
  EXPECT_THROW(encode(file, "axb"), Error);
}

TEST(Tokenizer, TakesAWholeWordWhereMergesAreIgnored) {
  Json file = small_file();
  file["model"]["vocab"]["cab"] = 8;
  EXPECT_EQ(encode(file, "cab"), (std::vector<int32_t>{2, 3}));
  file["model"]["ignore_merges"] = true;
  EXPECT_EQ(encode(file, "cab"), (std::vector<int32_t>{8}));
}

// A tokenizer of characters with bytes for two of them.
Json piece_file() {
  Json file = small_file();
  file["pre_tokenizer"] = nullptr;
  file["decoder"] = parse_json(
      R"({"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]})", "decoder");
  file["model"]["byte_fallback"] = true;
  file["model"]["unk_token"] = "?";
  file["model"]["fuse_unk"] = true;
  file["model"]["vocab"] = parse_json(
      R"({"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5, "aa": 6, "aaaa": 7, "?": 8, "<0xC3>": 9, "<0xA9>": 10})",
      "vocab");
  return file;
}

TEST(Tokenizer, FallsBackToBytes) {
  const Json file = piece_file();
  EXPECT_EQ(encode(file, "aéb"), (std::vector<int32_t>{0, 9, 10, 1}));
  EXPECT_EQ(encode(file, "axyb"), (std::vector<int32_t>{0, 8, 1}));
  EXPECT_EQ(encode(file, "xéya"), (std::vector<int32_t>{9, 10, 8, 0}));  // as `tokenizers`: bytes go first
  EXPECT_EQ(encode(file, "abcabc aab"), (std::vector<int32_t>{5, 5, 8, 0, 3}));
  EXPECT_EQ(parse(file).decode(std::vector<int32_t>{0, 9, 10, 3, 9, 3}, false), "aéab\uFFFDab");
}

// Strip after Fuse sees one text, whose end is known last.
TEST(Tokenizer, StripsBothEndsOfAFusedText) {
  Json file = small_file();
  file["decoder"] = parse_json(R"({"type": "Sequence", "decoders": [{"type": "Fuse"},
    {"type": "Strip", "content": "a", "start": 2, "stop": 3}]})",
                               "decoder");
  const Tokenizer tokenizer = parse(file);
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{0, 0, 0, 1, 0, 2, 6, 7}, false), "abacaaa");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{0, 1, 0, 0}, false), "b");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{7, 0}, false), "");
}

TEST(Tokenizer, EncodesATextWithoutWordsInTime) {
  const Tokenizer tokenizer = golden("llama2");
  std::string text;
  while (text.size() < 1'000'000) text += text.size() % 7 ? "the loom " : "x";
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, false), false), text);
  text.assign(300'000, 'a');
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, false), false), text);
}

TEST(Tokenizer, ReplacesBytesThatAreNotUtf8) {
  const Tokenizer tokenizer = golden("gpt2");
  EXPECT_EQ(tokenizer.encode("a\xFF"
                             "b\xE2\x82",
                             true),
            tokenizer.encode("a\uFFFDb\uFFFD", true));
}

TEST(Tokenizer, EncodesALongWordInTime) {
  const Tokenizer tokenizer = golden("gpt2");
  for (const std::string& unit :
       {std::string("a"), std::string("the"), std::string(" "), std::string("\xC3\xA9")}) {
    std::string text;
    while (text.size() < 300'000) text += unit;
    const auto ids = tokenizer.encode(text, true);  // quadratic work would take minutes
    EXPECT_EQ(tokenizer.decode(ids, false), text);
  }
}

TEST(Tokenizer, IsSharedByThreads) {
  const Tokenizer tokenizer = golden("odd");
  const std::string text = "a word, the word  <mask> 123 -x- né <end> \n";
  const auto expected = tokenizer.encode(text, true);
  std::vector<std::thread> threads;
  std::atomic<int> equal = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) equal += tokenizer.encode(text, true) == expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, 200);
}

// Sets the value at "/model/type".
void set_at(Json& file, std::string_view pointer, Json value) {
  Json* at = &file;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string_view name = pointer.substr(0, pointer.find('/'));
    at = &(*at)[name];
    pointer.remove_prefix(name.size());
  }
  *at = std::move(value);
}

TEST(TokenizerErrors, NameKeyAndValue) {
  const std::pair<const char*, const char*> wrong[] = {
      {"/model/dropout", "0.1"},
      {"/model/type", R"("Unigram")"},
      {"/model/vocab", "7"},
      {"/model/vocab/a", "-1"},
      {"/model/vocab/a", "4000000000"},
      {"/model/vocab/a", R"("zero")"},
      {"/model/vocab/a", "1"},
      {"/model/merges", R"(["a b c"])"},
      {"/model/merges", R"(["ab"])"},
      {"/model/merges", R"(["a c"])"},
      {"/model/merges", R"([["a"]])"},
      {"/model/merges", "[[1, 2]]"},
      {"/normalizer", R"({"type": "Replace", "pattern": {"Regex": "(a"}, "content": ""})"},
      {"/pre_tokenizer/type", R"("UnicodeScript")"},
      {"/pre_tokenizer", R"({"type": "Metaspace", "replacement": "__"})"},
      {"/pre_tokenizer", R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "x"})"},
      {"/decoder", R"({"type": "WordPiece"})"},
      {"/normalizer", R"({"type": "Precompiled", "precompiled_charsmap": "//8="})"},
      {"/normalizer", R"({"type": "Precompiled", "precompiled_charsmap": "AAA"})"},
      {"/post_processor", R"({"type": "BertProcessing"})"},
      {"/version", R"("2.0")"},
      {"/post_processor", R"({"type": "TemplateProcessing", "pair": [],
        "single": [{"SpecialToken": {"id": "a", "type_id": 0}}],
        "special_tokens": {"a": {"id": "a", "ids": [99], "tokens": ["a"]}}})"},
  };
  for (const auto& [pointer, value] : wrong) {
    Json file = small_file();
    set_at(file, pointer, parse_json(value, "value"));
    const std::string message = error_of(file);
    EXPECT_TRUE(message.starts_with("[tokenizer.json] ")) << pointer << ": " << message;
    std::string first_key = std::string(pointer).substr(1);
    first_key = first_key.substr(0, first_key.find('/'));
    EXPECT_NE(message.find(first_key), std::string::npos) << message;
  }
  EXPECT_THROW(Tokenizer::parse("{\"model\": ", "tokenizer.json"), Error);
  EXPECT_THROW(Tokenizer::load("/nowhere/tokenizer.json"), Error);
}

TEST(TokenizerErrors, AnAddedTokenHasTheIdItWouldBeGiven) {
  Json file = small_file();
  const auto add = [&](int id) {
    file["added_tokens"] = Json::array({Json::object({{"id", id},
                                                      {"content", "<s>"},
                                                      {"special", true},
                                                      {"single_word", false},
                                                      {"lstrip", false},
                                                      {"rstrip", false},
                                                      {"normalized", false}})});
  };
  add(9);
  EXPECT_NE(error_of(file).find("'<s>' would get id 8"), std::string::npos) << error_of(file);
  add(8);
  EXPECT_EQ(encode(file, "a<s>b"), (std::vector<int32_t>{0, 8, 1}));
}

}  // namespace
}  // namespace heddle
