#include "heddle/base/code.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(Code, NamesAreUniqueAndRowsInOrder) {
  std::set<std::string> names;
  for (const CodeInfo& info : kCodes) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(std::string(name(info.code)), info.name);
    EXPECT_EQ(&info_of(info.code), &info);
  }
  EXPECT_STREQ(name(Code(200)), "?");
}

TEST(Code, HasFewerBitsThanItsValues) {
  EXPECT_EQ(bits_of(Code::kNone), 0);
  for (const CodeInfo& info : kCodes) {
    if (info.code == Code::kNone) continue;
    EXPECT_EQ(bits_of(info.code), bits_of(info.element)) << info.name;
    EXPECT_LE(bits_of(info.code), 8) << info.name;
    EXPECT_EQ(8 % bits_of(info.code), 0) << info.name << ": a byte has whole codes";
    EXPECT_TRUE(is_wide_float(info.scale)) << info.name;
  }
}

TEST(Code, CodingsAreEqualByCodeAndGroup) {
  const Coding rows{Code::kF8E4M3, 0}, groups{Code::kF8E4M3, 128};
  EXPECT_EQ(rows, (Coding{Code::kF8E4M3}));
  EXPECT_NE(rows, groups);
  EXPECT_NE(rows, Coding{});
}

}  // namespace
}  // namespace heddle
