// Tile body of reduce. Included once per target, inside its namespace.
namespace reduce {

#include "heddle/ops/reduce/reduce_view.cuh"

struct Body {
  template <class Block>
  static void run(Block& block, const Reduce& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row)
      block.row(a.y).set(row, reduce_view(block, a.kind, a.x.last(), block.row(a.x, row)));
  }
};

}  // namespace reduce
