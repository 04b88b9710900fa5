#include "heddle/tile/raster.h"

#include <map>
#include <set>
#include <vector>

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

// Runs all blocks of a ring in any interleaving: each goes on when its turn at its step has come. Returns the order of blocks at
// each step; empty if nothing can go on.
template <class Ring, class Count>
std::map<i32, std::vector<i32>> run_ring(const Ring& ring, const Count& count, unsigned seed) {
  RandomLayouts random(seed);
  std::vector<i32> time(size_t(ring.blocks));
  std::map<i32, std::vector<i32>> met;
  i32 left = 0;
  for (i32 b = 0; b < ring.blocks; ++b) left += count(b);
  while (left > 0) {
    std::vector<i32> ready;
    for (i32 b = 0; b < ring.blocks; ++b) {
      if (time[size_t(b)] >= count(b)) continue;
      const i32 step = ring.step(b, time[size_t(b)]);
      if (ring.turn(b, step) == i32(met[step].size())) ready.push_back(b);
    }
    if (ready.empty()) return {};
    const i32 block = random.one_of(ready);
    met[ring.step(block, time[size_t(block)]++)].push_back(block);
    --left;
  }
  return met;
}

TEST(Raster, OrderedRingsHaveOneOrderAndDoNotStop) {
  for (const i32 blocks : {1, 2, 7, 16})
    for (const i32 steps : {1, 5, 14, 32}) {
      const OrderedRing ring{blocks, steps};
      const auto count = [&](i32) { return steps; };
      const auto order = run_ring(ring, count, 1);
      ASSERT_EQ(i32(order.size()), steps) << blocks << " blocks";
      for (const auto& [step, met] : order) ASSERT_EQ(i32(met.size()), blocks);
      for (unsigned seed = 2; seed < 5; ++seed) ASSERT_EQ(run_ring(ring, count, seed), order);
      for (i32 b = 0; b < blocks; ++b)
        for (i32 t = 0; t < steps; ++t) ASSERT_EQ(ring.time(b, ring.step(b, t)), t);
    }
}

TEST(Raster, CausalRingsHaveOneOrderAndDoNotStop) {
  for (const i32 blocks : {1, 4, 16}) {
    const CausalRing ring{blocks, 2 * blocks};
    const auto count = [&](i32 block) { return ring.count(block); };
    const auto order = run_ring(ring, count, 1);
    ASSERT_EQ(i32(order.size()), ring.steps);
    for (const auto& [step, met] : order) {
      ASSERT_EQ(i32(met.size()), step / 2 + 1);
      for (size_t i = 0; i < met.size(); ++i)
        ASSERT_EQ(met[i], i32(met.size() - 1 - i)) << "later blocks first";
    }
    for (unsigned seed = 2; seed < 5; ++seed) ASSERT_EQ(run_ring(ring, count, seed), order);
  }
}

TEST(Raster, StreamKTakesEveryStepOnce) {
  RandomLayouts random(11);
  for (i32 round = 0; round < 300; ++round) {
    const i32 tiles = random.number(1, 20), steps = random.number(1, 40);
    const StreamK stream{tiles, steps, random.number(1, std::min(tiles * steps, 50))};
    std::map<i32, std::vector<Piece>> pieces;
    i32 shortest = tiles * steps, longest = 0;
    for (i32 part = 0; part < stream.parts; ++part) {
      const Range range = stream.range(part);
      shortest = std::min(shortest, range.end - range.begin),
      longest = std::max(longest, range.end - range.begin);
      for (i32 at = range.begin; at < range.end;) {
        const Piece piece = stream.piece(part, at);
        ASSERT_GT(piece.steps.end, piece.steps.begin);
        pieces[piece.tile].push_back(piece);
        at += piece.steps.end - piece.steps.begin;
      }
    }
    ASSERT_LE(longest - shortest, 1) << "as even as can be";
    ASSERT_EQ(i32(pieces.size()), tiles);
    for (const auto& [tile, of_tile] : pieces) {
      ASSERT_EQ(i32(of_tile.size()), stream.pieces(tile));
      i32 at = 0;
      for (size_t i = 0; i < of_tile.size(); ++i) {
        ASSERT_EQ(of_tile[i].number, i32(i));
        ASSERT_EQ(of_tile[i].steps.begin, at);
        at = of_tile[i].steps.end;
      }
      ASSERT_EQ(at, steps);
    }
  }
}

}  // namespace
}  // namespace heddle::tile
