#include "heddle/model/hf/safetensors.h"

#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/model/hf/tensor_file.h"

namespace heddle {
namespace {

std::string with_length(uint64_t length, const std::string& rest) {
  std::string file(8, '\0');
  for (int i = 0; i < 8; ++i) file[size_t(i)] = char(uint8_t(length >> (8 * i)));
  return file + rest;
}

// A file with this header and `data_bytes` of data.
std::string file_of(const std::string& header, size_t data_bytes) {
  return with_length(header.size(), header + std::string(data_bytes, '\1'));
}

TensorTable parse(const std::string& file) {
  return parse_safetensors_header(std::as_bytes(std::span(file)), "x.safetensors");
}

// Opens `file` and returns the message of its error.
std::string message(const std::string& file) {
  try {
    parse(file);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_EQ(std::string(error.what()).substr(0, 15), "[x.safetensors]");
    return error.what();
  }
  return "accepted";
}

#define EXPECT_REFUSED(file, part) EXPECT_NE(message(file).find(part), std::string::npos) << message(file)

TEST(Safetensors, ReadsTensorsAndMetadata) {
  auto header = parse(file_of(R"({"__metadata__":{"format":"pt"},
      "b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},
      "a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},
      "none":{"dtype":"F64","shape":[0,7],"data_offsets":[4,4]}}  )",
                              16));
  EXPECT_EQ(header.metadata.at("format"), "pt");
  ASSERT_EQ(header.tensors.size(), 3u);
  EXPECT_EQ(header.tensors["b"].dtype, DType::kBf16);
  EXPECT_EQ(header.tensors["b"].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(header.tensors["b"].size, 12u);
  EXPECT_EQ(header.tensors["b"].begin, header.tensors["a"].begin + 4);
  EXPECT_FALSE(header.tensors["none"].dtype);
}

TEST(Safetensors, RefusesBrokenFrames) {
  EXPECT_REFUSED("", "0 bytes");
  EXPECT_REFUSED("1234567", "7 bytes");
  EXPECT_REFUSED(with_length(3, "{}"), "header has 3 bytes; after the length there are 2");
  EXPECT_REFUSED(with_length(~0ull, "{}"), "18446744073709551615");
  EXPECT_REFUSED(with_length(0, ""), "not valid JSON");
  std::string large = with_length(100'000'001, "");
  large.resize(large.size() + 100'000'001);
  EXPECT_REFUSED(large, "limit is 100000000");
  EXPECT_REFUSED(file_of("[]", 0), "must be an object");
  EXPECT_REFUSED(file_of("{\"a\":", 0), "not valid JSON");
  EXPECT_REFUSED(file_of("{\"\xff\":1}", 0), "not valid JSON");
  EXPECT_REFUSED(file_of("{}", 1), "end at byte 10, the file at 11");
}

TEST(Safetensors, RefusesDeepAndDoubleNames) {
  EXPECT_REFUSED(file_of("{\"a\":" + std::string(1'000'000, '['), 0), "deeper than 32");
  const std::string entry = R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_REFUSED(file_of("{\"a\":" + entry + ",\"a\":" + entry + "}", 1), "\"a\" appears twice");
  EXPECT_REFUSED(file_of(R"({"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1),
                 "twice");
}

TEST(Safetensors, RefusesBadEntries) {
  auto entry = [](const std::string& text) { return file_of("{\"a\":" + text + "}", 4); };
  EXPECT_REFUSED(entry("7"), "must be an object");
  EXPECT_REFUSED(entry(R"({"shape":[1],"data_offsets":[0,4]})"), "no 'dtype'");
  EXPECT_REFUSED(entry(R"({"dtype":4,"shape":[1],"data_offsets":[0,4]})"), "not a string: 4");
  EXPECT_REFUSED(entry(R"({"dtype":"F31","shape":[1],"data_offsets":[0,4]})"), "unknown dtype \"F31\"");
  EXPECT_REFUSED(entry(R"({"dtype":"F32","data_offsets":[0,4]})"), "no 'shape'");
  EXPECT_REFUSED(entry(R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})"), "list of numbers");
  EXPECT_REFUSED(entry(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"), "-1 in 'shape'");
  EXPECT_REFUSED(entry(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,4]})"), "1.5 in 'shape'");
  EXPECT_REFUSED(entry(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})"), "1 'data_offsets'");
  EXPECT_REFUSED(entry(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})"), "bytes 4 to 0");
  EXPECT_REFUSED(entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), "cut short");
  EXPECT_REFUSED(entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"), "takes 8");
  EXPECT_REFUSED(entry(R"({"dtype":"F4","shape":[3],"data_offsets":[0,2]})"), "no whole number of bytes");
}

TEST(Safetensors, RefusesSizesThatOverflow) {
  // 2^62 elements of 4 bytes are 0 modulo 2^64.
  EXPECT_REFUSED(file_of(R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0),
                 "overflows");
  EXPECT_REFUSED(file_of(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
                 "overflows");
  EXPECT_REFUSED(file_of(R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,0]}})", 0),
                 "in 'shape'");
}

TEST(Safetensors, RefusesGapsAndOverlap) {
  auto two = [](const char* offsets, size_t bytes) {
    return file_of(fmt::format(R"({{"a":{{"dtype":"U8","shape":[2],"data_offsets":[0,2]}},
                                   "b":{{"dtype":"U8","shape":[2],"data_offsets":[{}]}}}})",
                               offsets),
                   bytes);
  };
  EXPECT_EQ(message(two("2,4", 4)), "accepted");
  EXPECT_REFUSED(two("1,3", 3), "without gap or overlap");
  EXPECT_REFUSED(two("0,2", 2), "without gap or overlap");
  EXPECT_REFUSED(two("3,5", 5), "without gap or overlap");
  EXPECT_REFUSED(two("2,4", 5), "must be the same");
}

TEST(Safetensors, RefusesOddMetadata) {
  EXPECT_REFUSED(file_of(R"({"__metadata__":7})", 0), "map strings to strings");
  EXPECT_REFUSED(file_of(R"({"__metadata__":{"a":1,"b":"c"}})", 0), "map strings to strings");
}

TEST(Safetensors, MessagesStayShortAndPrintable) {
  const std::string text = message(file_of("{\"" + std::string(10'000, 'n') + "\\u001b[31m\":7}", 0));
  EXPECT_LT(text.size(), 300u);
  EXPECT_EQ(message(file_of("{\"\\u001b\":7}", 0)).find('\x1b'), std::string::npos);
}

class SafetensorsFile : public testing::Test {
 protected:
  std::string path = testing::TempDir() + "heddle_safetensors_test.safetensors";
  void TearDown() override { std::filesystem::remove(path); }
};

template <class T>
TensorView tensor(const std::string& name, DType dtype, std::vector<int64_t> shape,
                  const std::vector<T>& data) {
  return {name, dtype, std::move(shape), std::as_bytes(std::span(data)), ""};
}

TEST_F(SafetensorsFile, ReadsBackWhatWasWritten) {
  const std::vector<uint16_t> half = {1, 2, 3};
  const std::vector<float> single = {0.5f, -2.0f};
  write_safetensors(path,
                    {tensor("half", DType::kBf16, {3, 1}, half), tensor("single", DType::kF32, {2}, single)},
                    {{"who", "me"}});
  TensorFile file(path);
  EXPECT_EQ(file.metadata().at("who"), "me");
  TensorView view = file.view("half");
  EXPECT_EQ(view.dtype, DType::kBf16);
  EXPECT_EQ(view.shape, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(std::memcmp(view.data.data(), half.data(), 6), 0);
  EXPECT_EQ(std::memcmp(file.view("single").data.data(), single.data(), 8), 0);
  file.forget("half");
  EXPECT_EQ(std::memcmp(file.view("half").data.data(), half.data(), 6), 0);
  EXPECT_THROW(file.view("other"), Error);
}

TEST_F(SafetensorsFile, CopiesTensorsThatLieUnaligned) {
  // The header of 59 bytes puts the data at byte 67.
  write_file(path, file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}     )", 4));
  TensorFile file(path);
  ASSERT_EQ(file.tensors().at("a").begin % 4, 3u);
  auto data = file.view("a").data;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data.data()) % 4, 0u);
  EXPECT_EQ(std::memcmp(data.data(), "\1\1\1\1", 4), 0);
}

TEST_F(SafetensorsFile, HoldsTypesThatItCannotGive) {
  write_file(path, file_of(R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})", 8));
  TensorFile file(path);
  try {
    file.view("a");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("holds F64"), std::string::npos);
  }
}

TEST_F(SafetensorsFile, WriterRefusesWhatNoReaderWouldTake) {
  const std::vector<float> data = {1.0f};
  EXPECT_THROW(write_safetensors(path, {tensor("a", DType::kF32, {2}, data)}), Error);
  EXPECT_THROW(write_safetensors(path, {tensor("a", DType::kF32, {-1}, data)}), Error);
  EXPECT_THROW(write_safetensors(path, {tensor("\xff", DType::kF32, {1}, data)}), Error);
  auto a = tensor("a", DType::kF32, {1}, data);
  EXPECT_THROW(write_safetensors(path, {a, a}), Error);
  EXPECT_THROW(write_safetensors("/nonexistent/x", {a}), Error);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace heddle
