#include <array>
#include <cmath>
#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "heddle/base/digest.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/float16.h"
#include "heddle/base/result.h"

namespace heddle {
namespace {

TEST(Error, CarriesCodeAndValues) {
  try {
    require(false, "[op] rows {}; at most {}", 7, 4);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(error.what(), "[op] rows 7; at most 4");
  }
}

TEST(Result, GivesValueOrMessage) {
  Result<int> good = 3;
  Result<int> bad = Failure{"no"};
  EXPECT_EQ(good.value(), 3);
  EXPECT_EQ(bad.message(), "no");
  EXPECT_THROW((void)std::move(bad).or_throw(ErrorCode::kIo), Error);
}

TEST(Float16, RoundTripsEveryValue) {
  for (int bits = 0; bits < 65536; ++bits) {
    float bf16 = bf16_to_float(uint16_t(bits)), f16 = f16_to_float(uint16_t(bits));
    EXPECT_TRUE(std::isnan(bf16) || float_to_bf16(bf16) == bits) << bits;
    EXPECT_TRUE(std::isnan(f16) || float_to_f16(f16) == bits) << bits;
  }
}

TEST(Float16, RoundsToNearestEven) {
  EXPECT_EQ(float_to_bf16(1.0f + 0x1p-8f), 0x3f80);  // a tie goes to even
  EXPECT_EQ(float_to_bf16(1.0f + 0x1p-8f + 0x1p-20f), 0x3f81);
  EXPECT_EQ(float_to_f16(1.0f + 0x1p-11f), 0x3c00);
  EXPECT_EQ(float_to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(float_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_f16(0x1p-25f), 0);
  EXPECT_TRUE(std::isnan(f16_to_float(float_to_f16(NAN))));
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(NAN))));
}

TEST(File, WritesWholeOrNot) {
  const std::string path = testing::TempDir() + "heddle_file_test";
  write_file(path, "first");
  write_file(path, "second");
  EXPECT_EQ(read_file(path), "second");
  EXPECT_EQ(MappedFile(path).bytes().size(), 6u);
  std::filesystem::remove(path);
  EXPECT_THROW(read_file(path), Error);
  EXPECT_THROW(write_file("/nonexistent/x", "y"), Error);
  EXPECT_THROW(MappedFile("/"), Error);
}

TEST(File, AppearsOnCommitOnly) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "heddle_output_file";
  std::filesystem::create_directory(folder);
  const std::string path = folder / "pieces";
  { OutputFile(path).append("lost"); }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  OutputFile file(path);
  file.append("one ");
  EXPECT_FALSE(std::filesystem::exists(path));
  file.append("two");
  file.commit();
  EXPECT_EQ(read_file(path), "one two");
  std::filesystem::remove_all(folder);
}

TEST(File, WritesInPlaceWhatIsNoRegularFile) {
  const std::string path = testing::TempDir() + "heddle_pipe";
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  write_file(path, "through");
  char text[16] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 7);
  ::close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(path));
  std::filesystem::remove(path);
}

TEST(File, SaysThatTheDiskIsFull) {
  if (!std::filesystem::is_character_file("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  try {
    write_file("/dev/full", "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("No space left"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST(Digest, TellsPartsApart) {
  const std::vector<std::string_view> one = {"ab", "c"}, other = {"a", "bc"}, joined = {"abc"};
  EXPECT_NE(digest_of(one), digest_of(other));
  EXPECT_NE(digest_of(one), digest_of(joined));
  EXPECT_EQ(digest_of(one), digest_of(one));
  EXPECT_EQ(digest_of(one).size(), 32u);
}

TEST(Digest, OfLongMemoryTellsEachByteAndItsPlace) {
  std::string first((9 << 20) + 5, 'a'), second = "b";
  const auto digest = [&](int threads) {
    return digest_of_memory(std::array<std::string_view, 2>{first, second}, threads);
  };
  const std::string before = digest(1);
  EXPECT_EQ(digest(3), before);
  for (const size_t at : {size_t(0), first.size() / 2, first.size() - 1}) {
    first[at] = 'c';
    EXPECT_NE(digest(2), before);
    first[at] = 'a';
  }
  second = "d";
  EXPECT_NE(digest(1), before);
}

}  // namespace
}  // namespace heddle
