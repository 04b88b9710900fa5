// Tile body of soft_clip. Included once per target, inside its namespace.
namespace soft_clip {

struct Body {
  template <class Block>
  static void run(Block& block, const SoftClip& a, const TileCoord& t) {
    block.inputs();
    auto shift = block.row(a.shift);
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row);
      auto y = block.row(a.y, row);
      block.map(a.x.last(), [&](auto i) {
        auto v = x.load(i) + shift.load(i);
        auto inside = min(max(v, -a.limit), a.limit);
        y.store(i, inside + a.slope * (v - inside));
      });
    }
  }
};

}  // namespace soft_clip
