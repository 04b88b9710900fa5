// Tile body of reduce_dim. Included once per target, inside its namespace.
namespace reduce_dim {

#include "heddle/ops/reduce/reduce_view.cuh"

constexpr i32 kFewColumns = 16;  // too few to go along them

struct Body {
  template <class Block>
  static void run(Block& block, const ReduceDim& a, const TileCoord& t) {
    block.inputs();
    for (i32 g = t[0]; g < t[1]; ++g) {
      if (a.x.size[2] < kFewColumns) {
        for (i32 d = t[2]; d < t[3]; ++d) block.row(a.y, g).set(d, reduce_column(block, a, g, d));
      } else {
        auto y = block.row(a.y, g).from(t[2]);
        block.map(t[3] - t[2], [&](auto i) { y.store(i, reduce_rows(block, a, g, t[2], i)); });
      }
    }
  }

 private:
  template <class Block>
  static float reduce_column(Block& block, const ReduceDim& a, i32 g, i32 d) {
    auto first = block.row(a.x, g, 0).from(d);
    if (a.x.stride[1] == 1) return reduce_view(block, a.kind, a.x.size[1], first);
    return reduce_view(block, a.kind, a.x.size[1], first.every(a.x.stride[1]));
  }

  template <class Block, class Index>
  static auto reduce_rows(Block& block, const ReduceDim& a, i32 g, i32 begin, Index i) {
    const i32 rows = a.x.size[1];
    const auto value = [&](i32 row) { return block.row(a.x, g, row).from(begin).load(i); };
    if (a.kind != kReduceMax) {
      const auto sum = cascade_sum(rows, value);
      return a.kind == kReduceMean ? sum / float(rows) : sum;
    }
    auto most = value(0);
    for (i32 row = 1; row < rows; ++row) most = max(most, value(row));
    return most;
  }
};

}  // namespace reduce_dim
