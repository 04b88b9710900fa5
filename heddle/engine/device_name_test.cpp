#include "heddle/engine/device_name.h"

#include <gtest/gtest.h>

#include "heddle/engine/builtins.h"

namespace heddle {
namespace {

using Kind = DeviceName::Kind;

class DeviceNames : public testing::Test {
 protected:
  static void SetUpTestSuite() { register_builtins(); }

  static void expect_refused(const std::string& text, const std::string& words) {
    try {
      parse_device(text, "--device");
      FAIL() << text << " is taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("a device is cpu, cuda, or cuda:1"), std::string::npos);
    }
  }
};

TEST_F(DeviceNames, AreReadInOneForm) {
  EXPECT_EQ(parse_device("cpu", "").kind, Kind::kCpu);
  EXPECT_EQ(parse_device("cuda", "").kind, Kind::kGpu);
  EXPECT_FALSE(parse_device("cuda", "").ordinal);
  EXPECT_EQ(parse_device("cuda:12", "").ordinal, 12);
  EXPECT_EQ(parse_device("cuda:12", "").text(), "cuda:12");
  EXPECT_EQ(parse_device("1", "").kind, Kind::kNumber);
  EXPECT_EQ(parse_device("1", "").ordinal, 1);
}

TEST_F(DeviceNames, OthersAreRefusedWithWhatIsMeant) {
  for (const char* text : {"", "-1", "cuda:", "cuda:-1", "cuda:x", "cuda:1x", "cuda:99999999999", "1.5"})
    expect_refused(text, "is no device");
  expect_refused("gpu", "did you mean cuda?");
  expect_refused("gpu:1", "did you mean cuda?");
  expect_refused("CPU", "did you mean cpu?");
  expect_refused("cdua", "did you mean cuda?");
  expect_refused("h200", "is a card that heddle compile makes programs for");
  expect_refused("sm_90a", "is an architecture");
  expect_refused("megakernel", "is an executor (--executor megakernel)");
}

TEST_F(DeviceNames, ChooseAnExecutorAndFitIt) {
  EXPECT_EQ(executor_on(parse_device("cpu", "")).name, "threads");
  EXPECT_EQ(executor_on(parse_device("cuda:1", "")).name, "megakernel");
  EXPECT_EQ(executor_on(parse_device("cuda:1", "")).device, 1);
  EXPECT_EQ(ordinal_for("reference", parse_device("cpu", ""), ""), 0);
  EXPECT_EQ(ordinal_for("launches", parse_device("cuda:3", ""), ""), 3);
  EXPECT_EQ(ordinal_for("launches", parse_device("3", ""), ""), 3);
  EXPECT_THROW(ordinal_for("threads", parse_device("cuda", ""), ""), Error);
  EXPECT_THROW(ordinal_for("megakernel", parse_device("cpu", ""), ""), Error);
}

}  // namespace
}  // namespace heddle
