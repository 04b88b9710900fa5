#include "heddle/tile/philox.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

void expect_words(PhiloxWords got, PhiloxWords wanted) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(got.at[i], wanted.at[i]) << i;
}

// The known answers that the authors publish for philox4x32-10.
TEST(Philox, GivesTheKnownAnswers) {
  expect_words(philox(0, {}), {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  constexpr u32 kOnes = 0xffffffff;
  expect_words(philox(~u64{0}, {{kOnes, kOnes, kOnes, kOnes}}),
               {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  expect_words(philox(0x299f31d0a4093822, {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}),
               {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

TEST(Philox, DrawsAreUniform) {
  constexpr u32 kDraws = 100000;
  double sum = 0, squares = 0;
  for (u32 draw = 0; draw < kDraws; ++draw) {
    const double u = double(uniform_draw(7, draw));
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u, squares += u * u;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.003);  // standard error 0.0009
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.003);
}

}  // namespace
}  // namespace heddle
