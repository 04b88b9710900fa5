// Tile body of position_gain. Included once per target, inside its namespace.
namespace position_gain {

struct Body {
  template <class Block>
  static void run(Block& block, const PositionGain& a, const TileCoord& t) {
    block.inputs();
    const i32 last = a.gains.last() - 1;
    for (i32 row = t[0]; row < t[1]; ++row) {
      const i32 at = block.device(a.state).position()[row] / a.period;
      const float gain = block.row(a.gains).get(at < last ? at : last);
      auto x = block.row(a.x, row).from(t[2]), y = block.row(a.y, row).from(t[2]);
      block.map(t[3] - t[2], [&](auto i) { y.store(i, x.load(i) * gain); });
    }
  }
};

}  // namespace position_gain
