// The ids are those of tiktoken 0.14.0 for the same ranks, patterns and special tokens.
#include "heddle/text/tiktoken.h"

#include <filesystem>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "heddle/base/base64.h"
#include "heddle/base/file.h"
#include "heddle/text/tokenizer.h"

namespace heddle {
namespace {

// 256 bytes, and tokens from 256 on.
std::string ranks() {
  std::string lines;
  int rank = 0;
  const auto add = [&](const std::string& bytes) {
    lines += to_base64(bytes) + " " + std::to_string(rank++) + "\n";
  };
  for (int byte = 0; byte < 256; ++byte) add(std::string(1, char(byte)));
  for (const char* token :
       {"12", "aB", "th", "the", " the", "\xE4\xB8", "\xE4\xB8\xAD", "\xC3\xA9", "\xE4\xB8\xAD\x61"})
    add(token);
  return lines;
}

constexpr int kEnd = 265;  // the first id after the ranks
constexpr const char* kText =
    "the the aB 1212\xE4\xB8\xAD"
    "a";

struct Tiktoken : testing::Test {
  std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("heddle_tiktoken_" + std::to_string(::getpid()));
  Tiktoken() { std::filesystem::create_directories(folder); }
  ~Tiktoken() override { std::filesystem::remove_all(folder); }

  Tokenizer load(const std::string& file, const std::string& model_type, const Json& config,
                 const std::string& bytes = ranks()) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    write_file(folder / file, bytes);
    write_file(folder / "config.json", Json::object({{"model_type", model_type}}).dump());
    write_file(folder / "tokenizer_config.json", config.dump());
    return Tokenizer::load(folder);
  }
  std::string error_of(const std::string& bytes, const Json& config) {
    try {
      load("x.tiktoken", "qwen", config, bytes);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }
};

Json of_class(const char* name) {
  return Json::object({{"tokenizer_class", name}});
}

TEST_F(Tiktoken, OfMetasFolderHasItsPatternAndTokens) {
  const Tokenizer tokenizer = load("tokenizer.model", "llama", Json::object());
  EXPECT_EQ(tokenizer.encode(kText, true), (std::vector{kEnd, 259, 260, 32, 257, 32, 256, 49, 50, 264}));
  EXPECT_EQ(tokenizer.encode("<|eot_id|><|start_header_id|><|reserved_special_token_2|>", false),
            (std::vector{kEnd + 9, kEnd + 6, kEnd + 11}));
  EXPECT_EQ(tokenizer.vocab_size(), size_t(kEnd + 256));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(kText, true), true), kText);
}

TEST_F(Tiktoken, OfKimiCutsHanAndTakesNamesOfTheFolder) {
  Json config = of_class("TikTokenTokenizer");
  config["added_tokens_decoder"] = Json::object(
      {{std::to_string(kEnd), Json::object({{"content", "[BOS]"}, {"special", true}})},
       {std::to_string(kEnd + 2), Json::object({{"content", "<|im_end|>"}, {"special", false}})}});
  const Tokenizer tokenizer = load("tiktoken.model", "kimi_k2", config);
  EXPECT_EQ(tokenizer.encode(kText, true), (std::vector{259, 260, 32, 97, 66, 32, 256, 49, 50, 262, 97}));
  EXPECT_EQ(tokenizer.encode("[BOS]<|im_end|><|reserved_token_266|>", true),
            (std::vector{kEnd, kEnd + 2, kEnd + 1}));
  EXPECT_EQ(tokenizer.decode(std::vector{kEnd, kEnd + 2, 97}, true), "<|im_end|>a");
}

TEST_F(Tiktoken, OfTheFirstQwenComposesCharacters) {
  const Tokenizer tokenizer = load("qwen.tiktoken", "qwen", of_class("QWenTokenizer"));
  EXPECT_EQ(tokenizer.encode(kText, true), (std::vector{259, 260, 32, 257, 32, 49, 50, 49, 50, 264}));
  EXPECT_EQ(tokenizer.encode("e\xCC\x81<|im_start|><|extra_204|>", true),
            (std::vector{263, kEnd + 1, kEnd + 207}));
}

TEST_F(Tiktoken, OfGlm4BeginsEachTextWithItsTwoTokens) {
  Json config = of_class("ChatGLM4Tokenizer"), listed = Json::object();
  int id = kEnd;
  for (const char* token : {"<|endoftext|>", "[gMASK]", "<sop>"})
    listed[std::to_string(id++)] = Json::object({{"content", token}, {"special", true}});
  EXPECT_NE(error_of(ranks(), config).find("[gMASK], which the folder gives no id"), std::string::npos);
  config["added_tokens_decoder"] = listed;
  const Tokenizer tokenizer = load("tokenizer.model", "chatglm", config);
  EXPECT_EQ(tokenizer.encode("12", true), (std::vector{kEnd + 1, kEnd + 2, 256}));
  EXPECT_EQ(tokenizer.encode("12", false), (std::vector{256}));
}

TEST_F(Tiktoken, WithoutAKnownPatternIsRefusedByName) {
  const std::string hy = error_of(ranks(), of_class("HYTokenizer"));
  EXPECT_NE(hy.find("is a vocabulary of tiktoken; the pattern that cuts words is in the code of HYTokenizer"),
            std::string::npos)
      << hy;
  EXPECT_NE(hy.find("TikTokenConverter(\"x.tiktoken\", pattern=.."), std::string::npos) << hy;
  EXPECT_NE(error_of(ranks(), Json::object()).find("does not name, and the model is qwen"),
            std::string::npos);
}

TEST_F(Tiktoken, ThatIsMalformedIsNamed) {
  const Json qwen = of_class("QWenTokenizer");
  const auto listed = [](const char* id) {
    Json config = of_class("QWenTokenizer");
    config["added_tokens_decoder"] = Json::object({{id, Json::object({{"content", "x"}})}});
    return config;
  };
  const std::pair<std::string, const char*> cases[] = {
      {"YQ== 0\nYg== 0\n", "x.tiktoken:2] 1 to 1024 bytes in base64 and the rank 1 are expected"},
      {"YQ== 0\n? 1\n", "x.tiktoken:2]"},
      {"YQ==\n", "x.tiktoken:1]"},
      {"YQ== 0 0\n", "x.tiktoken:1]"},
      {" 0\n", "x.tiktoken:1]"},
      {"YQ== 0\n", "no token for the byte 0"},
      {"", "no token for the byte 0"},
      {ranks() + "YWE= 265\nYWE= 266\n", "\"aa\" twice"},
      {ranks() + to_base64(std::string(1025, 'a')) + " 265\n", "1 to 1024 bytes"}};
  for (const auto& [bytes, message] : cases)
    EXPECT_NE(error_of(bytes, qwen).find(message), std::string::npos)
        << message << ": " << error_of(bytes, qwen);
  EXPECT_NE(error_of(ranks(), listed("9999999999")).find("has the id 9999999999"), std::string::npos);
  std::string other_ends = ranks();
  for (size_t at = 0; (at = other_ends.find('\n', at)) != std::string::npos; at += 2)
    other_ends.replace(at, 1, "\r\n");
  EXPECT_EQ(error_of(other_ends + "\n", qwen), "");
}

}  // namespace
}  // namespace heddle
