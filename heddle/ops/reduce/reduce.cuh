// Tile body of reduce. Included once per target, inside its namespace.
namespace reduce {

struct Body {
  template <class Block, class View>
  static float reduce_row(Block& block, i32 kind, i32 columns, View x) {
    auto element = [&](auto i) { return x.load(i); };
    if (kind == kReduceMax) return block.reduce(columns, Max(), element);
    const float sum = block.reduce(columns, Sum(), element);
    return kind == kReduceMean ? sum / float(columns) : sum;
  }

  template <class Block>
  static void run(Block& block, const Reduce& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row)
      block.row(a.y).set(row, reduce_row(block, a.kind, a.x.last(), block.row(a.x, row)));
  }
};

}  // namespace reduce
