#include "heddle/base/json.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/json_view.h"

namespace heddle {
namespace {

// Parses `text` and returns the message of the error.
std::string error_of(std::string_view text, const JsonLimits& limits = {}) {
  try {
    return "no error but " + parse_json(text, "f.json", limits).dump();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    return error.what();
  }
}

void expect_refused(std::string_view text, std::string_view message, const JsonLimits& limits = {}) {
  EXPECT_NE(error_of(text, limits).find(message), std::string::npos) << error_of(text, limits);
}

std::string nested(int levels) {
  return std::string(size_t(levels), '[') + std::string(size_t(levels), ']');
}

TEST(Json, ReadsEveryKindAndKeepsTheOrder) {
  const char* text = R"({"z":[1,-2,2.5,"a\u00e9\n",true,null],"a":{},"m":[]})";
  const Json json = parse_json(text, "f.json");
  EXPECT_EQ(json.dump(), "{\"z\":[1,-2,2.5,\"a\u00e9\\n\",true,null],\"a\":{},\"m\":[]}");
  EXPECT_EQ(json.dump(-1, true), text);
  EXPECT_EQ(json.at("z").items()[1].to_int(), -2);
  EXPECT_EQ(json.at("z").items()[2].as_number(), 2.5);
  EXPECT_EQ(json.members()[2].name, "m");
  EXPECT_EQ(json.size(), 3u);
  EXPECT_EQ(json.find("b"), nullptr);
  EXPECT_EQ(parse_json(json.dump(2), "again"), json);
}

TEST(Json, KeepsNumbersOfSixtyFourBits) {
  const Json json = parse_json(
      "[9223372036854775807, -9223372036854775808, 18446744073709551615, 18446744073709551616, 1.0]", "f");
  EXPECT_EQ(json.items()[0].to_int(), INT64_MAX);
  EXPECT_EQ(json.items()[1].to_int(), INT64_MIN);
  EXPECT_TRUE(json.items()[2].is_integer());
  EXPECT_FALSE(json.items()[2].to_int());
  EXPECT_EQ(json.items()[2].dump(), "18446744073709551615");
  EXPECT_TRUE(json.items()[3].is_integer());
  EXPECT_FALSE(json.items()[3].to_int());
  EXPECT_EQ(json.items()[3].integer_digits(), "18446744073709551616") << "as it was written";
  EXPECT_EQ(json.items()[3].as_number(), 0x1p64);
  EXPECT_FALSE(json.items()[4].is_integer()) << "1.0 is a float";
  EXPECT_EQ(Json(UINT64_MAX).dump(), "18446744073709551615");
  expect_refused("1e999", "overflow");
}

TEST(Json, RefusesNamesThatStandTwice) {
  expect_refused("{\"a\": 1,\n  \"b\": 2, \"a\": 3}",
                 "[f.json] line 2, column 11: the name \"a\" appears twice");
  expect_refused(R"([{"x":{"q\"":1,"q\"":2}}])", "line 1, column 16: the name \"q\\\"\" appears twice");
  expect_refused(R"({"a":{"a":1},"a":1})", "line 1, column 14:");
  EXPECT_EQ(error_of(R"([{"a":1},{"a":{"a":1}}])"), R"(no error but [{"a":1},{"a":{"a":1}}])");
}

TEST(Json, RefusesDepthAndSize) {
  EXPECT_EQ(error_of(nested(5), {.depth = 5}), "no error but " + nested(5));
  expect_refused(nested(6), "[f.json] line 1, column 6: nested deeper than 5 levels", {.depth = 5});
  expect_refused("[\n{\"a\": {}}]", "line 2, column 7: nested deeper than 2 levels", {.depth = 2});
  expect_refused(nested(1'000'000), "nested deeper than 128 levels");
  EXPECT_EQ(error_of("[12]", {.bytes = 4}), "no error but [12]");
  expect_refused("[123]", "[f.json] has 5 bytes; JSON of at most 4 is read", {.bytes = 4});
}

TEST(Json, SaysWhereATextIsNoJson) {
  expect_refused("", "[f.json] line 1, column 1: not valid JSON");
  expect_refused("{\"a\": 1,\n \"b\" 2}", "[f.json] line 2, column 6: not valid JSON");
  expect_refused("[1, 2", "line 1, column 6: not valid JSON");
  expect_refused("[1] 2", "line 1, column 5: not valid JSON");
  expect_refused("{\"\xff\": 1}", "not valid JSON");
  for (const char* text : {"nul", "[1,]", "{a:1}", "'a'", "01", "NaN", "[1 2]", "\"a"})
    expect_refused(text, "not valid JSON");
}

TEST(Json, FindsMembersOfLargeObjects) {
  Json large;
  for (int i = 0; i < 1000; ++i) large[std::to_string(i * 7919 % 1000)] = i;
  const Json read = parse_json(large.dump(), "f");
  EXPECT_EQ(read, large);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(read.at(std::to_string(i * 7919 % 1000)), i);
  EXPECT_EQ(read.find("1000"), nullptr);
  Json changed = read;
  changed["new"] = 1;
  changed["7"] = "seven";
  EXPECT_EQ(changed.at("new"), 1);
  EXPECT_EQ(changed.at("7"), "seven");
  EXPECT_EQ(changed.size(), 1001u);
  expect_refused(large.dump().substr(0, large.dump().size() - 1) + ",\"500\":1}", "\"500\" appears twice");
}

TEST(Json, WritesTextThatIsNotUtf8) {
  const Json json = Json::array({"a\xff"});
  EXPECT_EQ(json.dump(), "[\"a\uFFFD\"]");
  EXPECT_THROW((void)json.dump_strictly(), Error);
}

TEST(Json, RefusesAnotherKind) {
  EXPECT_THROW((void)Json::object().items(), Error);
  EXPECT_THROW((void)Json::array().members(), Error);
  EXPECT_THROW((void)Json("1").as_number(), Error);
  EXPECT_FALSE(Json("1").to_int() || Json(1.0).to_int());
  for (const Json& json : {Json(), Json(1), Json("a"), Json::array(), Json::object()}) {
    EXPECT_THROW((void)json.as_bool(), Error);
    EXPECT_EQ(json.is_string(), std::string_view(json.kind()) == "string");
    EXPECT_EQ(json.size(), 0u);
    EXPECT_THROW((void)json.at("a"), Error);
  }
}

TEST(Json, NamesTheFile) {
  const std::string path = testing::TempDir() + "heddle_json_test.json";
  write_file(path, "{\"a\": [1, 2]}");
  EXPECT_EQ(load_json(path).at("a").size(), 2u);
  write_file(path, "{");
  try {
    (void)load_json(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("[" + path + "] line 1, column 2: ")) << error.what();
  }
  std::filesystem::remove(path);
}

TEST(JsonView, NamesThePathToAValue) {
  const JsonDocument document(R"({"a": [{"b": 300}]})", "f.json");
  const JsonView root = document.root(), list = root.at("a");
  list.for_each_item([](const JsonView& item) {
    const JsonView value = item.at("b");
    EXPECT_EQ(value.as_int(0, 300), 300);
    try {
      (void)value.as_int(0, 255);
      FAIL();
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "[f.json] a[0].b is 300: a whole number from 0 to 255 is expected");
    }
  });
}

}  // namespace
}  // namespace heddle
