// Tile body of expert_sum. Included once per target, inside its namespace.
namespace expert_sum {

struct Body {
  template <class Block>
  static void run(Block& block, const ExpertSum& a, const TileCoord& t) {
    block.inputs();
    const i32 taken = a.share.last();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto share = block.row(a.share, row), y = block.row(a.y, row).from(t[2]);
      block.map(t[3] - t[2], [&](auto i) {
        auto sum = block.row(a.x, row * taken).from(t[2]).load(i) * share.get(0);
        for (i32 c = 1; c < taken; ++c)
          sum = fma(block.row(a.x, row * taken + c).from(t[2]).load(i), decltype(sum)(share.get(c)), sum);
        y.store(i, sum);
      });
    }
  }
};

}  // namespace expert_sum
