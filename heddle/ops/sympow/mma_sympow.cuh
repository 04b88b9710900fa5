// Tile body of mma_sympow: 64 positions at a time, the columns of phi over time as the left matrix. Included once per
// target, inside its namespace.
namespace mma_sympow {

constexpr i32 kGroups = 4;  // a tile has so many at most, as mma_sympow.cpp says

struct Body {
  template <class Block>
  static void run(Block& block, const MmaSympow& a, const TileCoord& t) {
    block.inputs();
    const ChunkTiles tiles = a.tiles();
    const i32 heads = a.x.size[2], b = t[0] / heads, h = t[0] % heads, dim = a.x.size[3];
    const i32 all = a.width() / kSympowGroup, parts = (all + kGroups - 1) / kGroups;
    const i32 chunk = t[1] / parts, first = t[1] % parts * kGroups, columns = t[3] - t[2];
    const i32 groups = all - first < kGroups ? all - first : kGroups, end = tiles.chunk_end(chunk);
    auto sums = block.scratch(kGroups * kSympowGroup * columns);
    auto x = block.scratch(dim * kChunkRows);  // [K, times]
    auto product = block.product(kSympowGroup, columns, kChunkRows, a.v.dtype);
    auto part = block.fragment(0, kSympowGroup, 0, columns);
    for (i32 begin = tiles.chunk_begin(chunk); begin < end; begin += kChunkRows) {
      const i32 times = end - begin < kChunkRows ? end - begin : kChunkRows;
      block.map_rows(dim, times, [&](i32 k, auto i) {
        x.from(k * kChunkRows).store(i, block.row(a.x, b, begin, h).from(k).every(a.x.stride[1]).load(i));
      });
      // Zeros here make the rest of the tile count nothing, whatever the right matrix has there.
      block.map_rows(dim, kChunkRows - times,
                     [&](i32 k, auto i) { x.from(k * kChunkRows + times).store(i, block.index(i) * 0.0f); });
      block.set_right_columns(product, 0,
                              Lines{block.row(a.v, b, begin, h).from(t[2]), a.v.stride[1], times, columns});
      block.sync();
      for (i32 g = 0; g < groups; ++g) {
        const SympowGroup group = sympow_group(a.power, first + g);
        const auto element = [&](i32 k) { return x.from(k * kChunkRows); };
        block.map_rows(kSympowGroup, kChunkRows, [&](i32 c, auto i) {
          auto value = element(group.slow + c / kSympowTile).load(i) *
                       (element(group.fast + c % kSympowTile).load(i) * group.weight());
          if (group.first >= 0) value = value * element(group.first).load(i) * element(group.second).load(i);
          product.left_row(c).store(i, value);
        });
        block.sync();
        block.mma(part, product);
        block.sync();
        const bool is_first = begin == tiles.chunk_begin(chunk);
        block.map_rows(kSympowGroup, columns, [&](i32 c, auto i) {
          auto sum = sums.from((g * kSympowGroup + c) * columns);
          auto value = part.row(c);
          sum.store(i, is_first ? value.load(i) : sum.load(i) + value.load(i));
        });
        block.sync();
      }
    }
    const i32 row = chunk * a.width() + first * kSympowGroup;
    block.map_rows(groups * kSympowGroup, columns, [&](i32 n, auto i) {
      block.row(a.s, b, h, row + n).from(t[2]).store(i, sums.from(n * columns).load(i));
    });
  }
};

}  // namespace mma_sympow
