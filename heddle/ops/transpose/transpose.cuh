// Tile body of transpose. Included once per target, inside its namespace.
namespace transpose {

struct Body {
  template <class Block>
  static void run(Block& block, const Transpose& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row).from(t[2]);
      auto column = block.row(a.y, t[2]).from(row).every(a.y.stride[0]);
      block.map(t[3] - t[2], [&](auto i) { column.store(i, x.load(i)); });
    }
  }
};

}  // namespace transpose
