// Tile body of square. Included once per target, inside its namespace.
namespace square {

struct Body {
  template <class Block>
  static void run(Block& block, const Square& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row).from(t[2]);
      auto y = block.row(a.y, row).from(t[2]);
      block.map(t[3] - t[2], [&](auto i) {
        const auto value = x.load(i);
        y.store(i, value * value);
      });
    }
  }
};

}  // namespace square
