#include "heddle/base/failure.h"

#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/memory.h"

namespace heddle {
namespace {

template <class Work>
std::string message_from(Work&& work) {
  try {
    work();
  } catch (const std::exception& failure) {
    return message_of(failure);
  }
  return "no error";
}

TEST(Failure, IsSaidInHeddlesWords) {
  EXPECT_EQ(message_from([] { fail(ErrorCode::kIo, "[f] is short"); }), "[f] is short");
  const std::string file = message_from([] { (void)std::filesystem::file_size("/no/such/file"); });
  EXPECT_EQ(file, "[/no/such/file] cannot be used: No such file or directory");
  const std::string system =
      message_from([] { throw std::system_error(std::make_error_code(std::errc::broken_pipe), "fwrite"); });
  EXPECT_EQ(system, "[system] Broken pipe");
  const std::string at = message_from([] { (void)std::map<int, int>().at(1); });
  EXPECT_TRUE(at.starts_with("[heddle] a fault of heddle ")) << at;
  EXPECT_NE(at.find("(std::out_of_range); please report it"), std::string::npos) << at;
  EXPECT_EQ(at.find("map::at"), std::string::npos) << at;
  const std::string memory = message_from([] { throw std::bad_alloc(); });
  EXPECT_EQ(memory.find("bad_alloc"), std::string::npos) << memory;
  EXPECT_TRUE(memory.starts_with("[memory] ")) << memory;
}

TEST(Failure, OfMemorySaysHowMuchForWhat) {
#ifndef HEDDLE_SANITIZED  // a sanitizer's allocator ends the process
  const auto huge = [] { return make_vector<double>(size_t{1} << 57, "the test"); };
  EXPECT_NE(message_from(huge).find("1152921504606846976 bytes for the test cannot be had"),
            std::string::npos)
      << message_from(huge);
#endif
  const auto inside = [] {
    with_memory_for("a step", [] {
      note_refused(77);
      throw std::bad_alloc();
    });
  };
  EXPECT_TRUE(message_from(inside).starts_with("[memory] 77 bytes for a step cannot be had"))
      << message_from(inside);
  EXPECT_EQ(with_memory_for("this", [] { return 3; }), 3);
  EXPECT_EQ(take_refused(), 0u) << "it is said once";
}

}  // namespace
}  // namespace heddle
