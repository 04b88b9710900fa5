// Tile body of argmax. Included once per target, inside its namespace.
namespace argmax {

struct Body {
  template <class Block>
  static void run(Block& block, const Argmax& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row);
      const Best best = block.argmax(x, a.x.last());
      block.row(a.y).set_int(row, best.index);
    }
  }
};

}  // namespace argmax
