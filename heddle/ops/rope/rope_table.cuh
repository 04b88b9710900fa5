// Tile body of rope_table. Included once per target, inside its namespace.
namespace rope_table {

struct Body {
  template <class Block>
  static void run(Block& block, const RopeTable& a, const TileCoord& t) {
    block.inputs();
    auto inv_freq = block.row(a.inv_freq);
    for (i32 row = t[0]; row < t[1]; ++row) {
      const float position = float(block.device(a.state).position()[row]);
      auto out = block.row(a.table, row);
      block.map(a.inv_freq.last(), [&](auto i) {
        auto angle = inv_freq.load(i) * position;
        auto sine = angle, cosine = angle;
        sincos(angle, sine, cosine);
        out.store_pair(i, cosine * a.scale, sine * a.scale);
      });
    }
  }
};

}  // namespace rope_table
