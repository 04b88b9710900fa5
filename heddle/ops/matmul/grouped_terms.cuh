// Tile body of grouped_terms: rows and columns of one group's product. Included once per target, inside its namespace.
namespace grouped_terms {

struct Body {
  template <class Block>
  HEDDLE_PART_OF_CALLER static void run(Block& block, const GroupedTerms& a, const TileCoord& t) {
    block.inputs();
    const GroupedTermsTile tile(a, t[0]);
    const i32* ends = block.ints(a.ends);
    const i32 begin = tile.batch == 0 ? 0 : ends[tile.batch - 1], end = ends[tile.batch];
    if (end <= begin) {
      for (i32 row = tile.begin; row < tile.end; ++row) {
        auto y = block.row(a.y, tile.batch, row).from(t[1]);
        block.map(t[2] - t[1], [&](auto i) { y.store(i, 0.0f); });
      }
      return;
    }
    auto product = block.fragment(tile.begin, tile.end - tile.begin, t[1], t[2] - t[1]);
    block.mma(product, a.a.slice(false, begin, end), a.b.slice(true, begin, end));
    block.sync();
    block.map_rows(
        product.rows, product.cols, [&](i32 m, auto i) { return product.row(m).load(i); },
        [&](i32 m, auto i, auto value) {
          block.row(a.y, tile.batch, tile.begin + m).from(product.n0).store(i, value);
        });
  }
};

}  // namespace grouped_terms
