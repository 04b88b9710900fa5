// Tile body of gate_rows. Included once per target, inside its namespace.
namespace gate_rows {

struct Body {
  template <class Block>
  static void run(Block& block, const GateRows& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      const float gate = sigmoid(block.row(a.gate, row).get(0));
      auto x = block.row(a.x, row).from(t[2]), y = block.row(a.y, row).from(t[2]);
      block.map(t[3] - t[2], [&](auto i) { y.store(i, x.load(i) * gate); });
    }
  }
};

}  // namespace gate_rows
