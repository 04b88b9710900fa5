// Tile body of copy. Included once per target, inside its namespace.
namespace copy {

struct Body {
  template <class Block>
  static void run(Block& block, const Copy& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row).from(t[2]);
      auto y = block.row(a.y, row).from(t[2]);
      block.map(
          t[3] - t[2], [&](auto i) { return x.load(i); }, [&](auto i, auto value) { y.store(i, value); });
    }
  }
};

}  // namespace copy
