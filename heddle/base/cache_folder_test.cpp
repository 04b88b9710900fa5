#include "heddle/base/cache_folder.h"

#include <map>

#include <gtest/gtest.h>

#include "heddle/base/error.h"

namespace heddle {
namespace {

std::string folder(const std::map<std::string, std::string>& variables,
                   const std::string& account_home = "/account") {
  return cache_folder_from(
      [&](const char* name) { return variables.contains(name) ? variables.at(name) : std::string(); },
      account_home);
}

TEST(CacheFolder, IsTheFirstThatIsSet) {
  EXPECT_EQ(folder({{"HEDDLE_CACHE", "here"}, {"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}}), "here");
  EXPECT_EQ(folder({{"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}}), "/x/heddle");
  EXPECT_EQ(folder({{"XDG_CACHE_HOME", "x"}, {"HOME", "/h"}}), "/h/.cache/heddle") << "relative";
  EXPECT_EQ(folder({}), "/account/.cache/heddle");
  EXPECT_EQ(folder({{"HOME", ""}}), "/account/.cache/heddle");
}

TEST(CacheFolder, IsRefusedWhereThereIsNoHome) {
  try {
    folder({{"XDG_CACHE_HOME", "relative"}}, "");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("set HEDDLE_CACHE or HOME"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace heddle
