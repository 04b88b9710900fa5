// Tile body of router: rows -> FP32 operand, panels x operand -> fragment -> y. Included once per target, inside its
// namespace.
namespace router {

struct Body {
  template <class Block>
  static void run(Block& block, const Router& a, const TileCoord& t) {
    const i32 rows = block.rows(t);
    block.inputs();
    auto x = block.operand(a.x, t[0], rows, DType::kF32);
    block.sync();
    auto scores = block.fragment(t[0], rows, t[2], t[3] - t[2]);
    block.mma(scores, x, a.w);
    block.sync();
    block.map_rows(rows, scores.cols, [&](i32 m, auto i) {
      block.row(a.y, scores.m0 + m).from(scores.n0).store(i, scores.row(m).load(i));
    });
  }
};

}  // namespace router
