// Tile body of grouped_matmul: the rows of each group that a tile has. Included once per target, inside its namespace.
namespace grouped_matmul {

struct Body {
  template <class Block>
  HEDDLE_PART_OF_CALLER static void run(Block& block, const GroupedMatmul& a, const TileCoord& t) {
    block.inputs();
    const i32* ends = block.ints(a.ends);
    i32 done = t[0];  // rows that are stored
    for (i32 group = 0; group < a.ends.size[0] && done < t[1]; ++group) {
      const i32 end = ends[group] < t[1] ? ends[group] : t[1];
      if (end <= done) continue;
      multiply(block, a, done, end - done, t, group);
      done = end;
    }
    for (i32 row = done; row < t[1]; ++row) {
      auto y = block.row(a.y, row).from(t[2]);
      block.map(t[3] - t[2], [&](auto i) { y.store(i, 0.0f); });
    }
  }

  template <class Block>
  HEDDLE_PART_OF_CALLER static void multiply(Block& block, const GroupedMatmul& a, i32 first, i32 rows,
                                             const TileCoord& t, i32 group) {
    block.sync();
    auto product = block.fragment(first, rows, t[2], t[3] - t[2]);
    block.mma(product, a.a.matrix(), a.b.at(group));
    block.sync();
    block.map_rows(
        product.rows, product.cols, [&](i32 m, auto i) { return product.row(m).load(i); },
        [&](i32 m, auto i, auto value) { block.row(a.y, first + m).from(product.n0).store(i, value); });
    block.release(product);
  }
};

}  // namespace grouped_matmul
