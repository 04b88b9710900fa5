#include "heddle/text/tokenizer_keys.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/json.h"
#include "heddle/text/tokenizer.h"

namespace heddle {
namespace {

std::string key_error_of(const Json& file) {
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
  const Json base = parse_json(line, "keys");
  int accepted = 0, refused = 0;
  while (std::getline(rows, line)) {
    const Json row = parse_json(line, "keys");
    const Json& value = row.items()[1];
    const bool wanted = row.items()[2].as_bool();
    const auto section = row.items()[0].as_string();
    Json file = section.empty() ? value : base;
    if (!section.empty()) file[section] = value;
    const std::string error = key_error_of(file);
    EXPECT_EQ(error.empty(), wanted) << line << "\n" << error;
    EXPECT_TRUE(error.empty() || error.starts_with("[tokenizer.json] ")) << error;
    ++(wanted ? accepted : refused);
  }
  EXPECT_GT(accepted, 300);
  EXPECT_GT(refused, 1000);
}

TEST(TokenizerKeys, AreNamedInErrors) {
  const Json base =
      parse_json(R"({"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}})", "base");
  Json file = base;
  EXPECT_EQ(key_error_of(file), "");
  file["decodr"] = nullptr;
  EXPECT_NE(key_error_of(file).find("decodr is null: no tokenizer.json has this key"), std::string::npos);
  file = base;
  file["pre_tokenizer"] = Json::object({{"type", "Digits"}, {"individual", true}});
  EXPECT_NE(key_error_of(file).find("pre_tokenizer is an object of 2 members: it has no 'individual_digits'"),
            std::string::npos)
      << key_error_of(file);
  file["pre_tokenizer"] = Json::object({{"type", "Digit"}, {"individual_digits", true}});
  EXPECT_NE(key_error_of(file).find("pre_tokenizer.type is \"Digit\""), std::string::npos)
      << key_error_of(file);
}

}  // namespace
}  // namespace heddle
