// Plans the symmetric power of a vector: phi(x) has one value for each product of p of x's elements, grouped by tiles. With x in
// `tiles` tiles, phi has a block for each non-increasing set of p tiles, i0 >= i1 >= ...; the block holds all products of one element of
// each. <phi(x), phi(y)> = <x, y>^p if a block counts as often as its set has orders (multiplicity).
// Read by host and device: no standard headers.
#pragma once

#include "heddle/tile/distribution.h"

namespace heddle::tile {

constexpr i32 kMostPower = 4;

struct IndexSet {
  i32 tile[kMostPower] = {};  // each factor's, non-increasing
  friend constexpr bool operator==(const IndexSet&, const IndexSet&) = default;
};

struct TprodPlan {
  i32 size = 64;  // the vector's
  i32 tile = 8;   // elements of a tile
  i32 power = 2;

  constexpr bool exists() const { return (power == 2 || power == 4) && tile > 0 && size % tile == 0; }
  constexpr i32 tiles() const { return size / tile; }
  constexpr i32 blocks() const { return choose(tiles() + power - 1, power); }
  constexpr i32 block_size() const {
    i32 count = 1;
    for (i32 f = 0; f < power; ++f) count *= tile;
    return count;
  }
  constexpr i32 expanded() const { return blocks() * block_size(); }

  // Sets are ordered by their first tile, then their second and so on: the combinatorial number system.
  constexpr i32 number(const IndexSet& set) const {
    i32 before = 0;
    for (i32 f = 0; f < power; ++f) before += choose(set.tile[f] + power - 1 - f, power - f);
    return before;
  }
  constexpr IndexSet set(i32 number) const {
    IndexSet found;
    for (i32 f = 0; f < power; ++f) {
      i32& tile_of = found.tile[f];
      while (choose(tile_of + power - f, power - f) <= number) ++tile_of;
      number -= choose(tile_of + power - 1 - f, power - f);
    }
    return found;
  }
  constexpr IndexSet next(IndexSet set) const {
    i32 f = power - 1;
    while (f > 0 && set.tile[f] == set.tile[f - 1]) set.tile[f--] = 0;
    ++set.tile[f];
    return set;
  }
  // In how many orders the tiles of a set can stand: p! / (each tile's count)!
  constexpr i32 multiplicity(const IndexSet& set) const {
    i32 orders = 1, run = 0;
    for (i32 f = 0; f < power; ++f) {
      run = f > 0 && set.tile[f] == set.tile[f - 1] ? run + 1 : 1;
      orders = orders * (f + 1) / run;
    }
    return orders;
  }

  // The element of tile f that column `col` of a block takes: the last factor changes fastest.
  constexpr Layout factor(i32 f) const {
    i32 inner = 1, outer = 1;
    for (i32 g = 0; g < power; ++g) (g > f ? inner : outer) *= g == f ? 1 : tile;
    return line(inner, 0).with(tile, 1).with(outer, 0);
  }
  // A fragment of columns first ... of a block: the element of x that each element of the fragment takes as factor f is
  // first_of(...) + who(thread, i) of that distribution, plus the tile's begin. `fragment` has a row for each vector.
  constexpr Distribution factor_of(const Distribution& fragment, i32 f) const {
    const Layout to_factor = compose(factor(f), line(fragment.cols, 1));
    Layout elements = line(fragment.rows, 0);
    for (i32 i = 0; i < to_factor.rank; ++i)
      elements = elements.with(to_factor.mode[i].shape, to_factor.mode[i].stride);
    return {compose(elements, fragment.fragment), compose(elements, fragment.thread), 1, tile};
  }
  // Where the columns of step `step` (of `width`) begin in tile f.
  constexpr i32 first_of(i32 step, i32 width, i32 f) const { return factor(f)(step * width); }

 private:
  static constexpr i32 choose(i32 n, i32 k) {
    i64 ways = 1;
    for (i32 i = 1; i <= k; ++i) ways = ways * (n - k + i) / i;
    return n < k ? 0 : i32(ways);
  }
};

}  // namespace heddle::tile
