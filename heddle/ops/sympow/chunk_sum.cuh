// Tile body of chunk_sum. Included once per target, inside its namespace.
namespace chunk_sum {

#include "heddle/ops/sympow/prefix_sum.cuh"

struct Body {
  template <class Block>
  static void run(Block& block, const ChunkSum& a, const TileCoord& t) {
    block.inputs();
    const i32 heads = a.x.size[2], b = t[0] / heads, h = t[0] % heads;
    const i32 begin = a.tiles().chunk_begin(t[1]), end = a.tiles().chunk_end(t[1]);
    const auto from = [&](const Tensor& tensor, i32 n) {
      return block.row(tensor, b, begin + n).from(h).every(tensor.stride[1]);
    };
    prefix_sum(
        block, end - begin, [&](i32 n) { return from(a.x, n); }, [&](i32 n) { return from(a.y, n); });
  }
};

}  // namespace chunk_sum
