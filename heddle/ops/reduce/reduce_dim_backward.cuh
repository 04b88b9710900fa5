// Tile body of reduce_dim_backward. Included once per target, inside its namespace.
namespace reduce_dim_backward {

#include "heddle/ops/reduce/reduce_view.cuh"

constexpr i32 kFewColumns = 16;  // too few to go along them

// NaN where x is none of the numbers, else 0.
template <class V>
inline V nan_of(V x) {
  return where_less(x, V(kInfinity), V(0.0f), where_less(V(0.0f), x, V(0.0f), x));
}

struct Body {
  template <class Block>
  static void run(Block& block, const ReduceDimBackward& a, const TileCoord& t) {
    block.inputs();
    for (i32 g = t[0]; g < t[1]; ++g) {
      if (a.x.size[2] >= kFewColumns) {
        along_columns(block, a, g, t[2], t[3] - t[2]);
        continue;
      }
      for (i32 d = t[2]; d < t[3]; ++d) {
        auto x = block.row(a.x, g, 0).from(d).every(a.x.stride[1]);
        auto dx = block.row(a.dx, g, 0).from(d).every(a.dx.stride[1]);
        down_column(block, a, x, dx, block.row(a.dy, g).get(d));
      }
    }
  }

 private:
  template <class Block, class From, class To>
  static void down_column(Block& block, const ReduceDimBackward& a, From x, To dx, float dy) {
    const i32 rows = a.x.size[1];
    if (a.kind != kReduceMax) {
      const float share = a.kind == kReduceMean ? dy / float(rows) : dy;
      return block.map(rows, [&](auto i) { dx.store(i, decltype(x.load(i))(share)); });
    }
    const float most = reduce_view(block, kReduceMax, rows, x);
    const float count = block.reduce(rows, Sum(), [&](auto i) { return is_most(x.load(i), most, 1.0f); });
    const float share = dy / count + nan_of(most);
    block.map(rows, [&](auto i) { dx.store(i, is_most(x.load(i), most, share)); });
  }

  // `value` where x is the maximum, else 0.
  template <class V, class W, class U>
  static V is_most(V x, W most, U value) {
    return where_less(x, V(most), V(0.0f), V(value));
  }

  template <class Block>
  static void along_columns(Block& block, const ReduceDimBackward& a, i32 g, i32 begin, i32 count) {
    auto dy = block.row(a.dy, g).from(begin);
    const i32 rows = a.x.size[1];
    const auto x = [&](i32 row, auto i) { return block.row(a.x, g, row).from(begin).load(i); };
    block.map(count, [&](auto i) {
      auto share = a.kind == kReduceMean ? dy.load(i) / float(rows) : dy.load(i);
      auto most = share;
      if (a.kind == kReduceMax) {
        most = x(0, i);
        for (i32 row = 1; row < rows; ++row) most = max(most, x(row, i));
        auto ties = is_most(x(0, i), most, 1.0f);
        for (i32 row = 1; row < rows; ++row) ties = ties + is_most(x(row, i), most, 1.0f);
        share = share / ties + nan_of(most);
      }
      for (i32 row = 0; row < rows; ++row)
        block.row(a.dx, g, row)
            .from(begin)
            .store(i, a.kind == kReduceMax ? is_most(x(row, i), most, share) : share);
    });
  }
};

}  // namespace reduce_dim_backward
