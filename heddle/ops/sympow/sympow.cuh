// Tile body of sympow. Included once per target, inside its namespace.
namespace sympow {

struct Body {
  template <class Block>
  static void run(Block& block, const Sympow& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row), y = block.row(a.y, row).from(t[2]);
      block.map_rows((t[3] - t[2]) / kSympowTile, kSympowTile, [&](i32 j, auto i) {
        const SympowGroup group = sympow_group(a.power, (t[2] + j * kSympowTile) / kSympowGroup);
        const float factor = group.factor([&](i32 at) { return x.get(at); });
        y.from(j * kSympowTile)
            .store(i, x.from(group.fast).load(i) * (factor * x.get(group.slow + j % kSympowTile)));
      });
    }
  }
};

}  // namespace sympow
