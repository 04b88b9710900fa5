#include "heddle/tile/layout.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "tests/toolkit/random_layouts.h"

namespace heddle::tile {
namespace {

constexpr i32 kRounds = 2000;

TEST(Layout, GoesFromIndexToOffset) {
  constexpr Layout kLayout = line(8, 16).with(4, 1).with(2, 4);
  static_assert(kLayout.size() == 64 && kLayout.cosize() == 7 * 16 + 3 + 4 + 1);
  static_assert(kLayout(0) == 0 && kLayout(1) == 16 && kLayout(8) == 1 && kLayout(32) == 4);
  static_assert(by_rows(16, 64)(1 + 16 * 2) == 64 + 2 && by_columns(16, 64)(1 + 16 * 2) == 1 + 32);
  EXPECT_EQ(kLayout(37u), u32(kLayout(37))) << "an unsigned index means the same";
}

TEST(Layout, CoalesceKeepsTheFunction) {
  RandomLayouts random(1);
  for (i32 round = 0; round < kRounds; ++round) {
    const Layout a = random.layout(5, true), few = coalesce(a);
    ASSERT_EQ(few.size(), a.size());
    ASSERT_LE(few.rank, a.rank);
    for (i32 i = 0; i < a.size(); ++i) ASSERT_EQ(few(i), a(i));
  }
  static_assert(coalesce(line(8).with(4, 8)) == line(32));
}

TEST(Layout, ComposeIsOneAfterTheOther) {
  RandomLayouts random(2);
  i32 composed = 0;
  for (i32 round = 0; round < 3 * kRounds; ++round) {
    const Layout a = random.layout(4, true), b = random.layout(3, true);
    if (b.cosize() > a.size()) continue;
    const Composition made = try_compose(a, b);
    bool right = made.layout.size() == b.size();
    for (i32 i = 0; right && i < b.size(); ++i) right = made.layout(i) == a(b(i));
    if (made.ok) {
      ASSERT_TRUE(right);
    }
    composed += made.ok ? 1 : 0;
  }
  EXPECT_GT(composed, kRounds / 2);
}

TEST(Layout, ComposeRefusesWhatIsNoLayout) {
  EXPECT_FALSE(composes(line(6).with(4, 60), line(4, 4))) << "4 does not divide 6";
  EXPECT_FALSE(composes(line(2).with(4, 16), line(2, 1).with(2, 1))) << "1 + 1 carries into the second mode";
  EXPECT_TRUE(composes(line(4).with(4, 16), line(2, 1).with(2, 1)));
  EXPECT_ANY_THROW(compose(line(6).with(4, 60), line(4, 4)));
}

TEST(Layout, ComplementReachesTheRestOnce) {
  RandomLayouts random(3);
  for (i32 round = 0; round < kRounds; ++round) {
    const Layout a = random.layout(4, true);
    const i32 size = a.cosize() * random.one_of<i32>({1, 2, 3});
    const Layout rest = complement(a, size);
    std::set<i32> reached;
    for (i32 i = 0; i < a.size(); ++i)
      for (i32 j = 0; j < rest.size(); ++j) ASSERT_TRUE(reached.insert(a(i) + rest(j)).second) << "twice";
    // Every offset below `size`, and nothing between.
    ASSERT_GE(i32(reached.size()), size);
    ASSERT_EQ(*reached.rbegin(), i32(reached.size()) - 1);
    for (i32 j = 1; j < rest.size(); ++j) ASSERT_LT(rest(j - 1), rest(j));
  }
  EXPECT_FALSE(has_complement(line(4, 1).with(2, 2))) << "modes overlap";
  EXPECT_ANY_THROW(complement(line(4, 1).with(2, 2), 8));
}

TEST(Layout, DivideReachesEachElementOnce) {
  RandomLayouts random(4);
  i32 divided = 0;
  for (i32 round = 0; round < 2 * kRounds; ++round) {
    const Layout a = random.layout(4, true), b = random.layout(2, false);
    if (!divides(b, a)) continue;
    const LayoutPair cut = divide(a, b);
    std::multiset<i32> offsets, wanted;
    for (i32 i = 0; i < a.size(); ++i) wanted.insert(a(i));
    for (i32 i = 0; i < cut.inner.size(); ++i)
      for (i32 j = 0; j < cut.outer.size(); ++j) offsets.insert(cut.inner(i) + cut.outer(j));
    ASSERT_EQ(offsets, wanted);
    ++divided;
  }
  EXPECT_GT(divided, kRounds / 2);
  EXPECT_ANY_THROW(divide(line(3), line(2))) << "the second tile is past the end";
}

TEST(Layout, ProductRepeatsWithoutOverlap) {
  RandomLayouts random(5);
  i32 made = 0;
  for (i32 round = 0; round < kRounds; ++round) {
    const Layout a = random.layout(3, true), b = random.layout(2, false);
    if (!composes(complement(a, a.size() * b.cosize()), b)) continue;
    const LayoutPair all = product(a, b);
    ASSERT_EQ(all.inner, a);
    ASSERT_EQ(all.outer.size(), b.size());
    std::set<i32> reached;
    for (i32 i = 0; i < a.size(); ++i)
      for (i32 j = 0; j < all.outer.size(); ++j) ASSERT_TRUE(reached.insert(a(i) + all.outer(j)).second);
    ++made;
  }
  EXPECT_GT(made, kRounds / 2);
}

TEST(Layout, InverseGoesBack) {
  RandomLayouts random(6);
  for (i32 round = 0; round < kRounds; ++round) {
    const Layout a = random.layout(4, round % 2 == 0), back = inverse(a);
    for (i32 i = 0; i < back.size(); ++i) ASSERT_EQ(a(back(i)), i);
    if (round % 2 != 0) {
      ASSERT_EQ(back.size(), a.size()) << "of a layout without gaps, all of it";
    }
  }
}

// All aligned runs of `width` offsets of a are runs of b.
bool moves_as_words(const Layout& a, const Layout& b, i32 width) {
  std::vector<i32> index(size_t(a.cosize()), -1);
  for (i32 i = 0; i < a.size(); ++i) index[size_t(a(i))] = i;
  const i32 size = inverse(a).size();
  for (i32 at = 0; at < size; ++at)
    if (b(index[size_t(at)]) != b(index[size_t(at / width * width)]) + at % width) return false;
  return true;
}

TEST(Layout, CommonVectorIsTheWidestWord) {
  RandomLayouts random(7);
  i32 wide = 0;
  for (i32 round = 0; round < kRounds; ++round) {
    const std::vector<i32> shapes = round % 2 == 0 ? std::vector<i32>{1, 2, 4, 8} : std::vector<i32>{2, 3, 4};
    Layout a = random.layout(3, false, shapes), b = a;
    // Both have one list of shapes, so that indices mean the same; b's strides in another order.
    for (i32 i = 1, at = 1; i >= 0; --i) b.mode[i % b.rank].stride = at, at *= b.mode[i % b.rank].shape;
    if (random.number(0, 1) == 0) b = a, b.mode[0].stride *= random.number(1, 2);
    const i32 width = power_of_two_in(common_vector(a, b));
    ASSERT_TRUE(moves_as_words(a, b, width));
    if (round % 2 == 0 && width < inverse(a).size()) {
      ASSERT_FALSE(moves_as_words(a, b, 2 * width));
    }
    wide += width > 1 ? 1 : 0;
  }
  EXPECT_GT(wide, kRounds / 10);
  static_assert(common_vector(by_rows(128, 64), by_rows(128, 64)) == 128 * 64);
  static_assert(common_vector(by_rows(128, 64), line(128, 72).with(64, 1)) == 64);
  static_assert(common_vector(by_rows(128, 64), by_columns(128, 64)) == 1);
}

TEST(Swizzle, IsABijectionOfEachPeriodAndItsOwnInverse) {
  for (const i32 span : {128, 64, 32, 16}) {
    const Swizzle swizzle = swizzle_of_span(span);
    std::set<i32> reached;
    for (i32 at = 0; at < 1024; ++at) {
      EXPECT_EQ(swizzle(swizzle(at)), at);
      EXPECT_EQ(swizzle(at) % 16, at % 16) << "words of 16 bytes stay whole";
      EXPECT_EQ(swizzle(at) / 1024, 0);
      reached.insert(swizzle(at));
      EXPECT_EQ(swizzle(at + 1024), swizzle(at) + 1024);
    }
    EXPECT_EQ(reached.size(), 1024u);
  }
}

TEST(Swizzle, SpreadsAColumnOfEightWordsOverAllBanks) {
  for (const i32 span : {128, 64, 32}) {
    // Eight rows of a span: one word of each, as ldmatrix reads them.
    const Swizzle swizzle = swizzle_of_span(span);
    std::set<i32> groups;
    for (i32 row = 0; row < 8; ++row) groups.insert(swizzle(row * span) / 16 % 8);
    EXPECT_EQ(groups.size(), 8u) << span;
  }
}

TEST(Swizzle, InUnitsIsTheSamePermutation) {
  for (const i32 unit : {1, 2, 4, 8, 16}) {
    const Swizzle bytes = swizzle_of_span(128), units = bytes.in_units(unit);
    for (i32 at = 0; at < 2048; at += unit) EXPECT_EQ(units(at / unit) * unit, bytes(at));
  }
  EXPECT_ANY_THROW(swizzle_of_span(128).in_units(32)) << "a unit wider than a word";
  EXPECT_ANY_THROW(swizzle_of_span(128).in_units(3));
  EXPECT_ANY_THROW(swizzle_of_span(48));
}

}  // namespace
}  // namespace heddle::tile
