#include "heddle/text/stream_decoder.h"

#include <random>
#include <string>
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

INSTANTIATE_TEST_SUITE_P(Tokenizers, EveryKind,
                         testing::Values("llama3", "llama2", "mistral", "gemma", "worded"));

}  // namespace
}  // namespace heddle
