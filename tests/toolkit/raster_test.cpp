#include "heddle/tile/raster.h"

#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "tests/toolkit/random_layouts.h"

namespace heddle::tile {
namespace {

TEST(Raster, GroupsTakeEveryTileOnce) {
  RandomLayouts random(9);
  for (i32 round = 0; round < 300; ++round) {
    const GroupedRaster raster{random.number(1, 30), random.number(1, 30), random.number(1, 12)};
    std::set<std::pair<i32, i32>> seen;
    for (i32 t = 0; t < raster.tiles(); ++t) {
      const TileAt at = raster.at(t);
      ASSERT_TRUE(at.row >= 0 && at.row < raster.rows && at.col >= 0 && at.col < raster.cols);
      ASSERT_TRUE(seen.insert({at.row, at.col}).second);
    }
  }
  // 8 x 4 tiles run together: 8 rows and 4 columns of them.
  const GroupedRaster raster{64, 64, 8};
  std::set<i32> rows, cols;
  for (i32 t = 0; t < 32; ++t) rows.insert(raster.at(t).row), cols.insert(raster.at(t).col);
  EXPECT_EQ(rows.size(), 8u);
  EXPECT_EQ(cols.size(), 4u);
}

TEST(Raster, HeavyTilesComeFirst) {
  RandomLayouts random(10);
  for (i32 round = 0; round < 300; ++round) {
    const HeavyFirst raster{random.number(1, 20), random.number(1, 20), random.number(1, 8)};
    std::set<std::pair<i32, i32>> seen;
    i32 row = raster.rows, group = 0;
    for (i32 t = 0; t < raster.tiles(); ++t) {
      const HeadTile at = raster.at(t);
      ASSERT_TRUE(seen.insert({at.head, at.row}).second);
      if (at.head / raster.group != group) group = at.head / raster.group, row = raster.rows;
      ASSERT_LE(at.row, row) << "no tile is heavier than one before it";
      row = at.row;
    }
    EXPECT_EQ(i32(seen.size()), raster.tiles());
  }
}

}  // namespace
}  // namespace heddle::tile
