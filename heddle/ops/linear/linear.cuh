// Tile body of linear: prologue -> operand, panels x operand -> fragment, epilogues -> y.
// Included once per target, inside its namespace.

namespace linear {

// Columns of a fragment: whole panels and whole heads are cut by the tiling, so this only bounds scratch.
constexpr i32 kColumns = 256;

// Columns that tensor cores multiply at once, and stages of their operands on chip, at most.
struct DefaultConfig {
  static constexpr i32 kColumns = 256, kStages = 4;
};

template <class Config>
struct BodyWith {
  template <class Block>
  static void stream(Block& block, const Linear& a, const TileCoord& t) {
    const i32 rows = a.w.panel_rows;
    block.panels(a.w, t[2] / rows * a.w.slices(), (t[3] + rows - 1) / rows * a.w.slices());
  }

  template <class Block, class Chain>
  HEDDLE_PART_OF_CALLER static void run(Block& block, const Linear& a, const TileCoord& t, Chain& chain) {
    const i32 rows = block.rows(t);
    block.inputs();
    auto x =
        chain.has_prologue() ? block.operand(rows, a.w.cols(), a.w) : block.operand(a.x, t[0], rows, a.w);
    for (i32 m = 0; chain.has_prologue() && m < rows; ++m) chain.prologue(block, t[0] + m, x.row(m));
    block.sync();
    for (i32 n = t[2]; n < t[3]; n += kColumns) {
      auto fragment = block.fragment(t[0], rows, n, (t[3] - n < kColumns ? t[3] - n : kColumns));
      const auto first = fragment;  // an epilogue may put another in its place, made after it
      block.mma(fragment, x, a.w, Config());
      block.sync();
      chain.epilogues(block, fragment);
      block.map_rows(
          fragment.rows, fragment.cols, [&](i32 m, auto i) { return fragment.row(m).load(i); },
          [&](i32 m, auto i, auto value) {
            block.row(a.y, fragment.m0 + m).from(fragment.n0).store(i, value);
          });
      if (n + kColumns < t[3]) block.release(first);  // the end of a tile gives all back
    }
  }
};
using Body = BodyWith<DefaultConfig>;

}  // namespace linear
