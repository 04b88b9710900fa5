// Tile body of expert_sum. Included once per target, inside its namespace.
namespace expert_sum {

struct Body {
  template <class Block>
  static void run(Block& block, const ExpertSum& a, const TileCoord& t) {
    block.inputs();
    const i32 taken = a.share.last();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto share = block.row(a.share, row), y = block.row(a.y, row).from(t[2]);
      const auto place = block.row(a.place.exists() ? a.place : a.share, row);
      const auto from = [&](i32 c) { return a.place.exists() ? place.get_int(c) : row * taken + c; };
      i32 first = 0;
      while (first < taken && from(first) < 0) ++first;
      if (first == taken) {
        block.map(t[3] - t[2], [&](auto i) { y.store(i, 0.0f); });
        continue;
      }
      block.map(t[3] - t[2], [&](auto i) {
        auto sum = block.row(a.x, from(first)).from(t[2]).load(i) * share.get(first);
        for (i32 c = first + 1; c < taken; ++c)
          if (from(c) >= 0)
            sum = fma(block.row(a.x, from(c)).from(t[2]).load(i), decltype(sum)(share.get(c)), sum);
        y.store(i, sum);
      });
    }
  }
};

}  // namespace expert_sum
