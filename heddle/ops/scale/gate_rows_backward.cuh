// Tile body of gate_rows_backward. Included once per target, inside its namespace.
namespace gate_rows_backward {

struct Body {
  template <class Block>
  static void run(Block& block, const GateRowsBackward& a, const TileCoord& t) {
    block.inputs();
    const i32 columns = a.x.last();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row), dy = block.row(a.dy, row), dx = block.row(a.dx, row);
      const float open = sigmoid(block.row(a.gate, row).get(0));
      const float along = block.reduce(columns, Sum(), [&](auto i) { return x.load(i) * dy.load(i); });
      block.map(columns, [&](auto i) { dx.store(i, dy.load(i) * open); });
      block.row(a.dgate, row).set(0, along * (open * (1 - open)));
    }
  }
};

}  // namespace gate_rows_backward
