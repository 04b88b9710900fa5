// Tile body of state_scan_gates. Included once per target, inside its namespace.
namespace state_scan_gates {

struct Body {
  template <class Block>
  static void run(Block& block, const StateScanGates& a, const TileCoord& t) {
    block.inputs();
    const i32 heads = a.l.size[2], b = t[0] / heads, h = t[0] % heads;
    const i32 begin = a.tiles().chunk_begin(t[1]), end = a.tiles().chunk_end(t[1]);
    auto dl = block.row(a.dl, b, begin).from(h).every(a.dl.stride[1]);
    block.map(end - 1 - begin, [&](auto i) { dl.store(i, block.index(i) * 0.0f); });
    auto part = block.row(a.part, b, h, t[1]);
    const float sum = block.reduce(a.part.size[3], Sum(), [&](auto i) { return part.load(i); });
    block.row(a.dl, b, end - 1).set(h, sum * exp(block.row(a.l, b, end - 1).get(h)));
  }
};

}  // namespace state_scan_gates
