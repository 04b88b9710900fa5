// Tile body of gather_rows. Included once per target, inside its namespace.
namespace gather_rows {

struct Body {
  template <class Block>
  static void run(Block& block, const GatherRows& a, const TileCoord& t) {
    block.inputs();
    const i32* wanted = block.host(a.step).wanted_rows();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto in = block.row(a.x, wanted[row]), out = block.row(a.y, row);
      block.map(
          a.x.last(), [&](auto i) { return in.load(i); }, [&](auto i, auto value) { out.store(i, value); });
    }
  }
};

}  // namespace gather_rows
