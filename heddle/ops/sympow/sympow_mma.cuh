// Tile body of sympow_mma: a group of 64 columns of phi at a time, times its rows of the state. Included once per target,
// inside its namespace.
namespace sympow_mma {

struct Body {
  template <class Block>
  static void run(Block& block, const SympowMma& a, const TileCoord& t) {
    block.inputs();
    const ChunkTiles tiles = a.tiles();
    const i32 heads = a.x.size[2], b = t[0] / heads, h = t[0] % heads, begin = tiles.begin(t[1]);
    const i32 rows = tiles.end(t[1]) - begin, columns = t[3] - t[2];
    const i32 width = a.width(), first = tiles.chunk_of(t[1]) * width;
    auto sums = block.scratch(rows * columns);
    auto product = block.product(rows, columns, kSympowGroup, a.s.dtype);
    auto part = block.fragment(0, rows, 0, columns);
    for (i32 number = 0; number < width / kSympowGroup; ++number) {
      const SympowGroup group = sympow_group(a.power, number);
      block.map_rows(rows * kSympowTile, kSympowTile, [&](i32 j, auto i) {
        auto x = block.row(a.x, b, begin + j / kSympowTile, h);
        const float factor = group.factor([&](i32 at) { return x.get(at); });
        product.left_row(j / kSympowTile)
            .store(i + j % kSympowTile * kSympowTile,
                   x.from(group.fast).load(i) * (factor * x.get(group.slow + j % kSympowTile)));
      });
      block.set_right_columns(product, 0,
                              Lines{block.row(a.s, b, h, first + number * kSympowGroup).from(t[2]),
                                    a.s.stride[2], kSympowGroup, columns});
      block.sync();
      block.mma(part, product);
      block.sync();
      block.map_rows(rows, columns, [&](i32 m, auto i) {
        auto sum = sums.from(m * columns);
        auto value = part.row(m);
        sum.store(i, number == 0 ? value.load(i) : sum.load(i) + value.load(i));
      });
      block.sync();
    }
    block.map_rows(rows, columns, [&](i32 m, auto i) {
      block.row(a.y, b, begin + m, h).from(t[2]).store(i, sums.from(m * columns).load(i));
    });
  }
};

}  // namespace sympow_mma
