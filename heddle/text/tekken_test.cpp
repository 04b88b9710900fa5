// The ids are those of mistral-common 1.13.1 and of transformers' MistralConverter for the same file.
#include "heddle/text/tekken.h"

#include <filesystem>
#include <vector>

#include <gtest/gtest.h>

#include "heddle/base/base64.h"
#include "heddle/base/file.h"
#include "heddle/text/chat_template.h"
#include "heddle/text/tokenizer.h"

namespace heddle {
namespace {

constexpr const char* kPattern = R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s+(?!\S)|\s+)";

Json vocab_of(const std::vector<std::string>& more) {
  Json vocab = Json::array();
  const auto add = [&](const std::string& bytes) {
    vocab.push_back(
        Json::object({{"rank", vocab.size()}, {"token_bytes", to_base64(bytes)}, {"token_str", nullptr}}));
  };
  for (int byte = 0; byte < 256; ++byte) add(std::string(1, char(byte)));
  for (const std::string& token : more) add(token);
  return vocab;
}

Json special_of(const std::vector<std::string>& tokens) {
  Json list = Json::array();
  for (const std::string& token : tokens)
    list.push_back(Json::object({{"rank", list.size()}, {"token_str", token}, {"is_control", true}}));
  return list;
}

// 256 bytes and these tokens from id 6 on; the last one is beyond the vocabulary's size.
Json small() {
  return Json::object({{"config", Json::object({{"pattern", kPattern},
                                                {"default_vocab_size", 268},
                                                {"default_num_special_tokens", 6},
                                                {"version", "v11"}})},
                       {"vocab", vocab_of({"aa", "aaa", "th", "the", " the", "\xC3\xA9", "beyond"})},
                       {"special_tokens", special_of({"<unk>", "<s>", "</s>", "[INST]"})}});
}

struct Tekken : testing::Test {
  std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "heddle_tekken_test";
  Tekken() { std::filesystem::create_directories(folder); }
  ~Tekken() override { std::filesystem::remove_all(folder); }

  Tokenizer load(const Json& tekken) {
    write_file(folder / "tekken.json", tekken.dump());
    return Tokenizer::load(folder);
  }
  std::string error_of(const Json& tekken) {
    try {
      load(tekken);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }
};

TEST_F(Tekken, IsReadAsMistralCommonDoes) {
  const Tokenizer tokenizer = load(small());
  const int byte = 6;  // the id of the byte 0
  EXPECT_EQ(tokenizer.encode("aaaa", false), (std::vector{byte + 256, byte + 256}));
  EXPECT_EQ(tokenizer.encode("aaaaa", false), (std::vector{byte + 256, byte + 257}));
  EXPECT_EQ(tokenizer.encode("the the", true), (std::vector{1, byte + 259, byte + 260}));
  EXPECT_EQ(tokenizer.encode("[INST] \xC3\xA9!", false),
            (std::vector{3, byte + ' ', byte + 261, byte + '!'}));
  EXPECT_EQ(tokenizer.encode("b<SPECIAL_5>\xF0\x9F\x99\x82", false),
            (std::vector{byte + 'b', 5, byte + 0xF0, byte + 0x9F, byte + 0x99, byte + 0x82}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("[INST] the \xC3\xA9", true), true), " the \xC3\xA9");
  EXPECT_EQ(tokenizer.vocab_size(), 268u);
}

TEST_F(Tekken, OfTheFirstVersionHasTheTokensOfItsTime) {
  const Json old = Json::object({{"config", Json::object({{"pattern", kPattern},
                                                          {"default_vocab_size", 277},
                                                          {"default_num_special_tokens", 21}})},
                                 {"vocab", vocab_of({})}});
  const Tokenizer tokenizer = load(old);
  EXPECT_EQ(tokenizer.encode("[INST]<pad>[TOOL_CONTENT]<SPECIAL_20>", true), (std::vector{1, 3, 11, 19, 20}));
}

TEST_F(Tekken, GivesTemplatesItsTokensAndSettingsCount) {
  write_file(folder / "tokenizer_config.json",
             R"({"add_bos_token": false, "chat_template": "{{ bos_token }}"})");
  EXPECT_EQ(load(small()).encode("aa", true), (std::vector{6 + 256}));
  const ChatMessage hi{"user", "hi"};
  EXPECT_EQ(ChatTemplate::load(folder).render(std::span(&hi, 1)), "<s>");
}

TEST_F(Tekken, LeavesTurnsToMistralsProgram) {
  load(small());
  EXPECT_FALSE(ChatTemplate::exists(folder));
  try {
    ChatTemplate::fail_without(folder, "--template FILE");
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what())
                    .ends_with("with tekken.json, Mistral's own program makes the turns; "
                               "--template FILE gives it one, in Jinja"));
  }
}

TEST_F(Tekken, ThatIsMalformedIsNamed) {
  const auto with = [](const std::string& name, const Json& value) {
    Json made = small();
    made[name] = value;
    return made;
  };
  const auto of = [](const std::string& bytes) {
    Json vocab = vocab_of({bytes});
    return vocab;
  };
  const Json config = Json::object({{"pattern", kPattern}, {"default_vocab_size", 5}});
  const std::pair<Json, const char*> cases[] = {
      {Json::array(), "tekken.json] "},
      {Json::object(), "config"},
      {with("config", Json::object({{"pattern", 3}})), "config.pattern"},
      {with("config", Json::object({{"pattern", "(a"}})), "tekken.json] pre_tokenizer"},
      {with("config", config), "no token for the byte 1"},
      {with("vocab", vocab_of({})), "262 tokens are expected"},
      {with("vocab", 3), "vocab"},
      {with("vocab", Json::array({Json::object({{"token_bytes", "?"}})})), "vocab[0].token_bytes"},
      {with("vocab", Json::array({Json::object({{"token_bytes", "YQ=="}, {"rank", 1}})})), "vocab[0].rank"},
      {with("special_tokens", Json::array({Json::object({{"token_str", "x"}, {"rank", 1}})})),
       "special_tokens[0].rank"},
      {with("special_tokens", special_of({"x", "x"})), "\"x\" is there twice"}};
  for (const auto& [json, message] : cases)
    EXPECT_NE(error_of(json).find(message), std::string::npos) << message << ": " << error_of(json);
  Json twice = small();
  twice["vocab"] = vocab_of({"ab", "ab", "c1", "c2", "c3", "c4"});
  EXPECT_NE(error_of(twice).find("\"ab\" twice"), std::string::npos);
  twice["vocab"] = of(std::string(1025, 'a'));
  EXPECT_NE(error_of(twice).find("1 to 1024 bytes"), std::string::npos);
}

}  // namespace
}  // namespace heddle
