#include "heddle/engine/ngram_draft.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

using Tokens = std::vector<i32>;

std::vector<i32> guess_of(const Tokens& tokens, i32 most) {
  return NgramDraft().guess(tokens, most);
}

TEST(NgramDraft, GoesOnAsItDidLastTime) {
  EXPECT_EQ(guess_of({1, 2, 3, 4, 1, 2}, 8), (Tokens{3, 4, 1, 2}));
  EXPECT_EQ(guess_of({1, 2, 3, 4, 1, 2}, 1), (Tokens{3}));
  EXPECT_EQ(guess_of({7, 1, 2, 3, 9, 1, 2, 5, 8, 7, 1, 2}, 1), (Tokens{3})) << "a longer run says more";
  EXPECT_EQ(guess_of({1, 2, 3, 1, 2, 4, 1, 2}, 1), (Tokens{4})) << "the last time, of equals";
  EXPECT_EQ(guess_of({5, 5, 5}, 8), (Tokens{5})) << "a run may follow itself";
  for (const Tokens& none : {Tokens{}, {1}, {1, 2}, {1, 2, 3, 2}}) EXPECT_TRUE(guess_of(none, 8).empty());
  EXPECT_TRUE(guess_of({1, 2, 3, 4, 1, 2}, 0).empty());
}

TEST(NgramDraft, PausesWhereItIsWrong) {
  const Tokens text{1, 2, 3, 4, 1, 2};
  NgramDraft draft;
  const auto pause = [&] {
    i32 count = 0;
    for (; draft.pause() > 0; draft.pass()) ++count;
    return count;
  };
  EXPECT_TRUE(draft.guess(Tokens{1, 2, 3}, 4).empty());
  EXPECT_EQ(pause(), 8) << "there was nothing to guess";
  i32 wrong = 0;
  for (; draft.pause() == 0; ++wrong) draft.learn(4, 0);
  EXPECT_EQ(wrong, 8);
  EXPECT_TRUE(draft.guess(text, 4).empty());
  const i32 first = pause();
  for (i32 i = 0; i < 8; ++i) draft.learn(4, 0);
  EXPECT_EQ(pause(), 2 * first) << "longer each time";
  for (i32 i = 0; i < 100; ++i) draft.learn(4, 3);
  for (i32 i = 0; i < 15; ++i) draft.learn(4, 0);
  EXPECT_FALSE(draft.guess(text, 4).empty()) << "what was right counts";
}

}  // namespace
}  // namespace heddle
