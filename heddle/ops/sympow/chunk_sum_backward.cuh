// Tile body of chunk_sum_backward. Included once per target, inside its namespace.
namespace chunk_sum_backward {

#include "heddle/ops/sympow/prefix_sum.cuh"

struct Body {
  template <class Block>
  static void run(Block& block, const ChunkSumBackward& a, const TileCoord& t) {
    block.inputs();
    const i32 heads = a.dy.size[2], b = t[0] / heads, h = t[0] % heads;
    const i32 begin = a.tiles().chunk_begin(t[1]), end = a.tiles().chunk_end(t[1]);
    // Backwards: position n of the sums is the n-th from the end.
    const auto from = [&](const Tensor& tensor, i32 n) {
      return block.row(tensor, b, end - 1 - n).from(h).every(-tensor.stride[1]);
    };
    prefix_sum(
        block, end - begin, [&](i32 n) { return from(a.dy, n); }, [&](i32 n) { return from(a.dx, n); });
  }
};

}  // namespace chunk_sum_backward
