#include "heddle/text/tokenizer_files.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "heddle/base/base64.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/json_to.h"
#include "heddle/text/chat_template.h"
#include "heddle/text/tokenizer.h"

namespace heddle {
namespace {

const std::string kFileGoldens = HEDDLE_SOURCE_DIR "/tests/goldens/tokenizer/";

// A folder with a golden tokenizer and other files.
std::string make_folder(const std::string& base, const Json& files, const std::string& model = "") {
  const auto folder =
      std::filesystem::path(testing::TempDir()) / ("tokenizer_files_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  if (model.empty())
    std::filesystem::copy(kFileGoldens + base + "/tokenizer.json", folder);
  else
    write_file(folder / "tokenizer.model", model);
  for (const auto& [name, value] : files.members()) write_file(folder / name, value.dump());
  return folder;
}

// The files of the time before tokenizer.json, instead of it.
void split_tokenizer(const std::string& folder) {
  const std::filesystem::path root(folder);
  const Json tokenizer = load_json(root / "tokenizer.json");
  std::filesystem::remove(root / "tokenizer.json");
  const Json &model = tokenizer.at("model"), &vocab = model.at("vocab");
  std::string lines;
  if (const Json* merges = model.find("merges")) {
    for (const Json& merge : merges->items())
      lines += (merge.is_string() ? merge.as_string()
                                  : merge.items()[0].as_string() + " " + merge.items()[1].as_string()) +
               "\n";
    write_file(root / "vocab.json", vocab.dump());
    write_file(root / "merges.txt", "#version: 0.2\n" + lines);
    return;
  }
  std::map<int64_t, std::string> words;
  for (const auto& [word, id] : vocab.members()) words[*id.to_int()] = word;
  for (const auto& [id, word] : words) lines += word + "\n";
  write_file(root / "vocab.txt", lines);
}

TEST(TokenizerFiles, CountAsInTransformers) {
  std::ifstream rows(kFileGoldens + "folders.jsonl");
  std::string line;
  int count = 0;
  while (std::getline(rows, line)) {
    const Json row = parse_json(line, "folders");
    const Json* const model = row.find("model");
    const std::string folder = make_folder(row.at("base").as_string(), row.at("files"),
                                           from_base64(model ? model->as_string() : "").value_or(""));
    if (row.find("split")) split_tokenizer(folder);
    const std::string what = row.at("base").as_string() + " with " + row.at("files").dump();
    const Tokenizer tokenizer = Tokenizer::load(folder);
    for (const Json& item : row.at("texts").items()) {
      const std::string& text = item.at("text").as_string();
      const auto ids = json_to<std::vector<int32_t>>(item.at("ids"));
      EXPECT_EQ(tokenizer.encode(text, true), ids) << what << text;
      EXPECT_EQ(tokenizer.decode(ids, false), item.at("decoded").as_string()) << what << text;
    }
    std::map<std::string, std::string> specials, wanted;
    for (const auto& [name, token] : TokenizerFiles(folder).special_tokens()) specials[name] = token;
    for (const auto& [name, token] : row.at("special_tokens").members()) wanted[name] = token.as_string();
    EXPECT_EQ(specials, wanted) << what;
    ++count;
  }
  EXPECT_GE(count, 30);
}

TEST(TokenizerFiles, SayWhereASettingComesFrom) {
  const Json files = Json::object(
      {{"tokenizer_config.json", Json::object({{"tokenizer_class", "LlamaTokenizer"}, {"bos_token", "<a>"}})},
       {"special_tokens_map.json", Json::object({{"bos_token", "<b>"}})},
       {"config.json", Json::object({{"model_type", "llama"}})}});
  const TokenizerFiles found(make_folder("llama2", files));
  const TokenizerSetting *bos = found.find("bos_token"), *eos = found.find("eos_token");
  ASSERT_TRUE(bos && eos);
  EXPECT_EQ(bos->value.as_string() + " of " + bos->source, "<b> of special_tokens_map.json");
  EXPECT_EQ(eos->value.as_string() + " of " + eos->source, "</s> of the default of LlamaTokenizer");
  EXPECT_EQ(found.find("tokenizer_class")->source, "tokenizer_config.json");
}

TEST(TokenizerFiles, NameWhatIsWrong) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"tokenizer_config.json": []})", "an object is expected"},
      {R"({"added_tokens.json": {"<x>": "1"}})", "a token id is expected"},
      {R"({"tokenizer_config.json": {"added_tokens_decoder": {"x": {"content": "a"}}}})",
       "a token id is expected"},
      {R"({"tokenizer_config.json": {"added_tokens_decoder": {"1": 7}}})", "is no token"},
      {R"({"tokenizer_config.json": {"extra_special_tokens": [7]}})", "is no token"},
  };
  for (const auto& [files, message] : wrong) {
    try {
      Tokenizer::load(make_folder("gpt2", parse_json(files, "files")));
      ADD_FAILURE() << files;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  }
}

TEST(TokenizerFiles, RefuseWhatIsNoSentencePieceModel) {
  const std::pair<std::string, const char*> wrong[] = {{"x", "where 0 are left"},
                                                       {std::string("\x0A\x03\x0A\x01\xFF", 5), "not UTF-8"},
                                                       {std::string("\x0A\x05\x0A\x7F"
                                                                    "abc",
                                                                    7),
                                                        "where 3 are left"},
                                                       {std::string("\x12\x02\x18\x03", 4), "of type 3"},
                                                       {std::string("\x12\x00", 2), "no pieces"},
                                                       {std::string(11, '\xFF'), "64 bits"},
                                                       {"<!DOCTYPE html>", "wire type"}};
  for (const auto& [bytes, message] : wrong) {
    try {
      Tokenizer::load(make_folder("", Json::object(), bytes));
      ADD_FAILURE() << message;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("tokenizer.model] "), std::string::npos) << error.what();
    }
  }
}

// The message names what the folder has, and the way on.
TEST(TokenizerFiles, SayWhatIsThereInstead) {
  const std::pair<Json, const char*> cases[] = {
      {Json::object({{"qwen.tiktoken", ""}}), "qwen.tiktoken] is a vocabulary of tiktoken"},
      {Json::object({{"tiktoken.model", ""}}), "tiktoken.model] is a vocabulary of tiktoken"},
      {Json::object({{"spiece.model", ""}}), "spiece.model is not read"},
      {Json::object({{"vocab.json", Json::object()}, {"merges.txt", ""}}),
       "vocab.json and merges.txt do not say"},
      {Json::object({{"vocab.json", Json::object()},
                     {"tokenizer_config.json", Json::object({{"tokenizer_class", "GPT2Tokenizer"}})}}),
       "has vocab.json without merges.txt"},
      {Json::object({{"vocab.txt", ""}}), "vocab.txt is read where the model is BERT's"},
      {Json::object(), "has no tokenizer"}};
  for (const auto& [files, message] : cases) {
    const std::string folder = make_folder("gpt2", files);
    std::filesystem::remove(folder + "/tokenizer.json");
    try {
      Tokenizer::load(folder);
      ADD_FAILURE() << message;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  }
  const std::string rank = "YQ== 0\nYg== 1\n";
  EXPECT_THROW(
      {
        try {
          Tokenizer::load(make_folder("", Json::object(), rank));
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find("is a vocabulary of tiktoken"), std::string::npos);
          EXPECT_NE(std::string(error.what()).find("makes a tokenizer.json"), std::string::npos);
          throw;
        }
      },
      Error);
}

TEST(TokenizerFiles, GiveTemplatesTheirSpecialTokens) {
  const Json files = Json::object(
      {{"tokenizer_config.json",
        Json::object({{"chat_template", "{{ bos_token }}{{ messages[0].content }}"}})},
       {"special_tokens_map.json", Json::object({{"bos_token", Json::object({{"content", "<b>"}})}})}});
  const ChatTemplate chat = ChatTemplate::load(make_folder("gpt2", files));
  const ChatMessage hi{"user", "hi"};
  EXPECT_EQ(chat.render(std::span(&hi, 1)), "<b>hi");
  const Json named =
      Json::object({{"tokenizer_config.json",
                     Json::object({{"chat_template", "{{ image_token }}"},
                                   {"extra_special_tokens", Json::object({{"image_token", "<i>"}})}})}});
  EXPECT_EQ(ChatTemplate::load(make_folder("gpt2", named)).render(std::span(&hi, 1)), "<i>");
}

}  // namespace
}  // namespace heddle
