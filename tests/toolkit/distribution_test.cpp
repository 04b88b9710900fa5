#include "heddle/tile/distribution.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/toolkit/random_layouts.h"

namespace heddle::tile {
namespace {

struct Named {
  const char* name;
  Distribution who;
};

std::vector<Named> all() {
  std::vector<Named> named = {{"mma sums", mma_sums()}};
  for (const i32 bytes : {1, 2, 4}) {
    named.push_back({"mma left", mma_left(bytes)});
    named.push_back({"mma right", mma_right(bytes)});
    named.push_back({"wgmma left", wgmma_left(bytes)});
  }
  for (const i32 n : {8, 64, 176, 256}) named.push_back({"wgmma sums", wgmma_sums(n)});
  for (const i32 count : {1, 2, 4}) {
    named.push_back({"matrices", matrices(count)});
    named.push_back({"matrices transposed", matrices_transposed(count)});
  }
  named.push_back({"repeated", mma_sums().repeat({2, 4}, {4, 2})});
  named.push_back({"repeated left", wgmma_left(2).repeat({2, 4}, {1, 1})});
  named.push_back({"repeated in groups", wgmma_sums(64).repeat({1, 3}, {2, 1})});
  return named;
}

TEST(Distribution, EveryElementHasOneOwner) {
  for (const auto& [name, who] : all()) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(who.covers());
    EXPECT_EQ(who.copies(), 1);
    EXPECT_EQ(who.each() * who.threads(), who.rows * who.cols);
    std::vector<i32> owners(size_t(who.rows * who.cols));
    for (i32 t = 0; t < who.threads(); ++t)
      for (i32 i = 0; i < who.each(); ++i) {
        const i32 at = who(t, i);
        ++owners[size_t(at)];
        ASSERT_EQ(who.owner(at).thread, t);
        ASSERT_EQ(who.owner(at).index, i);
        ASSERT_EQ(who.of(t)(i), at);
        const Element element = who.element(t, i);
        ASSERT_EQ(element.row + who.rows * element.col, at);
      }
    EXPECT_EQ(owners, std::vector<i32>(owners.size(), 1));
  }
}

TEST(Distribution, CopiesAreCounted) {
  // Two lanes hold the same element: a mode of stride 0.
  const Distribution who{line(2, 1), line(2, 0).with(4, 2), 8, 1};
  EXPECT_TRUE(who.covers());
  EXPECT_EQ(who.copies(), 2);
  EXPECT_EQ(who.owner(3).thread, 2) << "the first of them";
  EXPECT_EQ(who.owner(3).index, 1);
  const Distribution gap{line(2, 1), line(4, 4), 16, 1};
  EXPECT_FALSE(gap.covers());
  const Distribution twice{line(4, 1), line(4, 2), 16, 1};
  EXPECT_FALSE(twice.covers());
}

// As the PTX ISA states them, by lane / 4 (group) and lane % 4.
TEST(Distribution, AreThoseOfThePtxIsa) {
  for (i32 lane = 0; lane < 32; ++lane) {
    const i32 group = lane / 4, in_group = lane % 4;
    for (i32 i = 0; i < 8; ++i) {  // m16n8k16, 16 bits, A
      const Element at = mma_left(2).element(lane, i);
      EXPECT_EQ(at.row, (i < 2 || (i >= 4 && i < 6)) ? group : group + 8);
      EXPECT_EQ(at.col, in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0));
    }
    for (i32 i = 0; i < 4; ++i) {
      const Element right = mma_right(2).element(lane, i), sum = mma_sums().element(lane, i);
      EXPECT_EQ(right.row, group);
      EXPECT_EQ(right.col, in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0));
      EXPECT_EQ(sum.row, i < 2 ? group : group + 8);
      EXPECT_EQ(sum.col, in_group * 2 + (i & 1));
      const Element tf32 = mma_left(4).element(lane, i);  // m16n8k8
      EXPECT_EQ(tf32.row, i % 2 == 0 ? group : group + 8);
      EXPECT_EQ(tf32.col, in_group + (i >= 2 ? 4 : 0));
    }
    for (i32 i = 0; i < 16; ++i) {  // m16n8k32, 8 bits, A
      const Element at = mma_left(1).element(lane, i);
      EXPECT_EQ(at.row, i < 4 || (i >= 8 && i < 12) ? group : group + 8);
      EXPECT_EQ(at.col, in_group * 4 + (i & 3) + (i >= 8 ? 16 : 0));
    }
    for (i32 i = 0; i < 8; ++i) {  // m16n8k32, 8 bits, B
      const Element at = mma_right(1).element(lane, i);
      EXPECT_EQ(at.row, group);
      EXPECT_EQ(at.col, in_group * 4 + (i & 3) + (i >= 4 ? 16 : 0));
    }
  }
  for (i32 t = 0; t < 128; ++t)
    for (i32 i = 0; i < 32; ++i) {  // wgmma m64n64
      const Element at = wgmma_sums(64).element(t, i);
      EXPECT_EQ(at.row, t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8);
      EXPECT_EQ(at.col, i / 4 * 8 + t % 4 * 2 + i % 2);
    }
}

TEST(Distribution, SaysHowWideAFragmentIs) {
  EXPECT_EQ(mma_sums().widest_in_row(), 2);
  EXPECT_EQ(mma_sums().widest_in_column(), 1);
  EXPECT_EQ(matrices_transposed(4).widest_in_column(), 2);
  EXPECT_EQ(mma_left(1).widest_in_row(), 4);
}

TEST(Distribution, RepeatsInsideAndAcrossThreads) {
  // 2 x 1 warps, each with 2 x 3 tiles: rows 16 ... of a tile alternate between the warps.
  const Distribution who = mma_sums().repeat({2, 3}, {2, 1});
  EXPECT_EQ(who.rows, 64);
  EXPECT_EQ(who.cols, 24);
  EXPECT_EQ(who.element(0, 0).row, 0);
  EXPECT_EQ(who.element(32, 0).row, 16);
  EXPECT_EQ(who.element(0, 4).row, 32) << "the thread's next tile along rows";
  EXPECT_EQ(who.element(0, 8).col, 8);
}

}  // namespace
}  // namespace heddle::tile
