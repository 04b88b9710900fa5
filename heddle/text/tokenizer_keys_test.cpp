#include "heddle/text/tokenizer_keys.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "heddle/base/error.h"
#include "heddle/text/tokenizer.h"

namespace heddle {
namespace {

using nlohmann::json;

std::string error_of(const json& file) {
  try {
    Tokenizer::parse(file.dump(), "tokenizer.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The file lists what `tokenizers` accepts.
TEST(TokenizerKeys, AreThoseOfTokenizers) {
  std::ifstream rows(HEDDLE_SOURCE_DIR "/tests/goldens/tokenizer/keys.jsonl");
  std::string line;
  std::getline(rows, line);
  const json base = json::parse(line);
  int accepted = 0, refused = 0;
  while (std::getline(rows, line)) {
    const json row = json::parse(line);
    const auto section = row[0].get<std::string>();
    json file = section.empty() ? row[1] : base;
    if (!section.empty()) file[section] = row[1];
    const std::string error = error_of(file);
    EXPECT_EQ(error.empty(), row[2].get<bool>()) << line << "\n" << error;
    EXPECT_TRUE(error.empty() || error.starts_with("[tokenizer.json] ")) << error;
    ++(row[2].get<bool>() ? accepted : refused);
  }
  EXPECT_GT(accepted, 300);
  EXPECT_GT(refused, 1000);
}

TEST(TokenizerKeys, AreNamedInErrors) {
  json file = json::parse(R"({"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}})");
  EXPECT_EQ(error_of(file), "");
  file["decodr"] = nullptr;
  EXPECT_NE(error_of(file).find("decodr is null: no tokenizer.json has this key"), std::string::npos);
  file.erase("decodr");
  file["pre_tokenizer"] = json::parse(R"({"type": "Digits", "individual": true})");
  EXPECT_NE(error_of(file).find("pre_tokenizer is an object of 2 members: it has no 'individual_digits'"),
            std::string::npos)
      << error_of(file);
  file["pre_tokenizer"] = json::parse(R"({"type": "Digit", "individual_digits": true})");
  EXPECT_NE(error_of(file).find("pre_tokenizer.type is \"Digit\""), std::string::npos) << error_of(file);
}

}  // namespace
}  // namespace heddle
