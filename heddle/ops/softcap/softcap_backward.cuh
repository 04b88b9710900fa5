// Tile body of softcap_backward. Included once per target, inside its namespace.
namespace softcap_backward {

struct Body {
  template <class Block>
  static void run(Block& block, const SoftcapBackward& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row).from(t[2]), dy = block.row(a.dy, row).from(t[2]);
      auto dx = block.row(a.dx, row).from(t[2]);
      block.map(t[3] - t[2], [&](auto i) {
        auto bent = tanh(x.load(i) * (1 / a.cap));
        dx.store(i, dy.load(i) * (-bent * bent + 1.0f));
      });
    }
  }
};

}  // namespace softcap_backward
