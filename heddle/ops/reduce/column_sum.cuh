// Tile body of column_sum. Included once per target, inside its namespace.
namespace column_sum {

struct Body {
  template <class Block>
  static void run(Block& block, const ColumnSum& a, const TileCoord& t) {
    block.inputs();
    auto y = block.row(a.y).from(t[0]);
    block.map(t[1] - t[0], [&](auto i) {
      auto sum = block.row(a.x, 0).from(t[0]).load(i);
      for (i32 row = 1; row < a.x.size[0]; ++row) sum = sum + block.row(a.x, row).from(t[0]).load(i);
      y.store(i, sum);
    });
  }
};

}  // namespace column_sum
