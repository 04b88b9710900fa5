#include "heddle/text/stream_decoder.h"

#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "heddle/text/unicode/utf8.h"

namespace heddle {
namespace {

Tokenizer golden(const std::string& name = "llama3") {
  return Tokenizer::load(HEDDLE_SOURCE_DIR "/tests/goldens/tokenizer/" + name + "/tokenizer.json");
}

TEST(StreamDecoder, HandsOutWholeCharacters) {
  const Tokenizer tokenizer = golden();
  StreamDecoder stream(tokenizer, true);
  const auto ids = tokenizer.encode("a🜁b", true);
  std::string text;
  size_t pieces = 0;
  for (int32_t id : ids) {
    const std::string piece = stream.push(id);
    EXPECT_TRUE(is_valid_utf8(piece));
    EXPECT_EQ(piece.find(kReplacement), std::string::npos);
    pieces += !piece.empty();
    text += piece;
  }
  EXPECT_EQ(text, "a🜁b");
  EXPECT_EQ(stream.flush(), "");
  EXPECT_LT(pieces, ids.size() - 1);  // the second character is several tokens
}

TEST(StreamDecoder, ReplacesWhatStaysIncomplete) {
  const Tokenizer tokenizer = golden();
  const auto ids = tokenizer.encode("🜁", false);
  StreamDecoder stream(tokenizer, false);
  EXPECT_EQ(stream.push(ids[0]), "");
  EXPECT_EQ(stream.flush(), kReplacement);
  EXPECT_EQ(stream.flush(), "");
}

TEST(StreamDecoder, WaitsForTheEndOfARunOfBytes) {
  const Tokenizer tokenizer = golden("llama2");
  StreamDecoder stream(tokenizer, false);
  std::string text;
  for (const char* token : {"<0xE2>", "<0x82>", "<0xAC>"}) text += stream.push(*tokenizer.token_to_id(token));
  EXPECT_EQ(text, "");
  EXPECT_EQ(stream.push(*tokenizer.token_to_id("a")), "€a");
  EXPECT_EQ(stream.push(*tokenizer.token_to_id("<0xE2>")), "");
  EXPECT_EQ(stream.push(*tokenizer.token_to_id("a")), "\uFFFDa");
  stream.push(*tokenizer.token_to_id("<0xE2>"));
  stream.push(*tokenizer.token_to_id("<0x82>"));
  EXPECT_EQ(stream.flush(), "\uFFFD\uFFFD");
}

class EveryKind : public testing::TestWithParam<const char*> {};

TEST_P(EveryKind, TogetherIsWhatDecodeGives) {
  const Tokenizer tokenizer = golden(GetParam());
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    const bool skip_special = random() % 2;
    std::vector<int32_t> ids(20);
    for (int32_t& id : ids) id = int32_t(random() % (random() % 3 ? 256 : 930));
    StreamDecoder stream(tokenizer, skip_special);
    std::string text;
    for (int32_t id : ids) {
      const std::string piece = stream.push(id);
      EXPECT_TRUE(is_valid_utf8(piece));
      text += piece;
    }
    EXPECT_EQ(text + stream.flush(), tokenizer.decode(ids, skip_special));
  }
}

// The text of all tokens after that of the first ones: a space before the first word of an answer is a part of it.
TEST_P(EveryKind, GoesOnAfterAPrompt) {
  const Tokenizer tokenizer = golden(GetParam());
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    std::vector<int32_t> ids(12);
    for (int32_t& id : ids) id = int32_t(random() % (random() % 3 ? 256 : 930));
    const size_t size = random() % ids.size();
    StreamDecoder stream(tokenizer, true);
    stream.begin_after(std::span(ids).first(size));
    std::string text;
    for (size_t i = size; i < ids.size(); ++i) text += stream.push(ids[i]);
    text += stream.flush();
    const std::string before = tokenizer.decode(std::span(ids).first(size), true),
                      all = tokenizer.decode(ids, true);
    std::string_view rest = all, seen = before;
    while (!rest.empty() && seen.starts_with(rest.substr(0, first_char(rest).size))) {
      seen.remove_prefix(first_char(rest).size);
      rest.remove_prefix(first_char(rest).size);
    }
    EXPECT_EQ(text, rest) << round;
    std::string other = stream.push(ids[0]);
    other += stream.flush();
    EXPECT_EQ(other, tokenizer.decode(std::span(ids).first(1), true)) << "it is ready for another text";
  }
}

TEST(StreamDecoder, KeepsTheSpaceAfterAPrompt) {
  const Tokenizer tokenizer = golden("llama2");
  const auto prompt = tokenizer.encode("ab", true), answer = tokenizer.encode("loom", false);
  StreamDecoder own(tokenizer, true), after(tokenizer, true);
  after.begin_after(prompt);
  std::string alone, together;
  for (const int32_t id : answer) alone += own.push(id), together += after.push(id);
  EXPECT_EQ(alone, "loom");
  EXPECT_EQ(together, " loom");
}

TEST(StreamDecoder, ShowsSpecialTokensThatItIsAskedFor) {
  const Tokenizer tokenizer = golden("llama2");
  const int32_t end = *tokenizer.token_to_id("</s>");
  StreamDecoder stream(tokenizer, true);
  EXPECT_EQ(stream.push(end), "");
  stream.show(end);
  EXPECT_EQ(stream.push(end), "</s>");
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, EveryKind,
                         testing::Values("llama3", "llama2", "mistral", "gemma", "worded"));

}  // namespace
}  // namespace heddle
