#include "heddle/text/unicode/normal_form.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(NormalForm, ComposesAndDecomposes) {
  EXPECT_EQ(to_normal_form("Zu\u0308rich", NormalForm::kNfc), "Z\u00FCrich");
  EXPECT_EQ(to_normal_form("Z\u00FCrich", NormalForm::kNfd), "Zu\u0308rich");
  EXPECT_EQ(to_normal_form("\uFB01 \u00BD \u2460", NormalForm::kNfkc), "fi 1\u20442 1");
  EXPECT_EQ(to_normal_form("\uFB01 \u00BD \u2460", NormalForm::kNfc), "\uFB01 \u00BD \u2460");
  EXPECT_EQ(to_normal_form("\u1100\u1161\u11A8 \u212B", NormalForm::kNfc), "\uAC01 \u00C5");
  EXPECT_EQ(to_normal_form("", NormalForm::kNfkd), "");
}

// Marks are put into order, but not across an ASCII character or one that the older tables lack.
TEST(NormalForm, OrdersMarks) {
  EXPECT_EQ(to_normal_form("a\u0345\u0334", NormalForm::kNfd), "a\u0334\u0345");
  EXPECT_EQ(to_normal_form("a\u0345b\u0334", NormalForm::kNfd), "a\u0345b\u0334");
  EXPECT_EQ(to_normal_form("a\u0898\u0334", NormalForm::kNfd), "a\u0898\u0334");
  EXPECT_EQ(to_normal_form("e\u0898\u0301e\u0301", NormalForm::kNfc), "e\u0898\u0301\u00E9");
}

TEST(NormalForm, MakesLowerCase) {
  EXPECT_EQ(to_lower_case("\u0130STANBUL \u01C4 \u03A3\u03A3"), "i\u0307stanbul \u01C6 \u03C3\u03C3");
  EXPECT_EQ(to_lower_case("\U00010D50\uA7DC"), "\U00010D70\u019B");  // newer than utf8proc's tables
}

}  // namespace
}  // namespace heddle
