// Tile body of column_sum. Included once per target, inside its namespace.
namespace column_sum {

#include "heddle/ops/reduce/cascade.cuh"

struct Body {
  template <class Block>
  static void run(Block& block, const ColumnSum& a, const TileCoord& t) {
    block.inputs();
    auto y = block.row(a.y).from(t[0]);
    block.map(t[1] - t[0], [&](auto i) {
      y.store(i, cascade_sum(a.x.size[0], [&](i32 row) { return block.row(a.x, row).from(t[0]).load(i); }));
    });
  }
};

}  // namespace column_sum
