// Tile body of add_backward. Included once per target, inside its namespace.
namespace add_backward {

struct Body {
  template <class Block>
  static void run(Block& block, const AddBackward& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto dy = block.row(a.dy, row).from(t[2]), dx = block.row(a.dx, row).from(t[2]);
      if (a.dcopy.exists()) {
        auto dcopy = block.row(a.dcopy, row).from(t[2]);
        block.map(t[3] - t[2], [&](auto i) { dx.store(i, dy.load(i) + dcopy.load(i)); });
      } else {
        block.map(t[3] - t[2], [&](auto i) { dx.store(i, dy.load(i)); });
      }
    }
  }
};

}  // namespace add_backward
