// Tile body of scaled_mm on a GPU. With scales of blocks, a thread adds up its own elements: it serves what the whole kernel leaves.
// (Products of squares in a loop over blocks keep NVRTC 13.0 busy for more than 20 minutes.) Included once per device program,
// after scaled_mm.cuh.
namespace scaled_mm {

struct DeviceBody {
  template <class Block>
  static __forceinline__ void run(Block& block, const ScaledMm& a, const TileCoord& t) {
    block.inputs();
    if (a.groups() > 1)
      return block.map_rows(block.rows(t), t[3] - t[2], [&](i32 m, auto i) {
        block.row(a.y, t[0] + m).from(t[2]).store(i, element(block, a, t[0] + m, t[2] + i.at));
      });
    auto part = block.fragment(t[0], block.rows(t), t[2], t[3] - t[2]);
    block.mma(part, a.a.matrix(), a.b.matrix());
    block.sync();
    Body::store_scaled(block, a, t, part);
  }

  template <class Block>
  static float element(Block& block, const ScaledMm& a, i32 m, i32 n) {
    float all = 0;
    for (i32 g = 0; g < a.groups(); ++g) {
      const i32 begin = g * kScaleBlock, end = min(begin + kScaleBlock, a.a.cols());
      float sum = 0;
      for (i32 k = begin; k < end; ++k) sum = fma(code(a.a, m, k), code(a.b, k, n), sum);
      all += sum * (scale(block, a.scale_a, place(a.scale_a.rows(), m, 1), place(a.scale_a.cols(), g, 1)) *
                    scale(block, a.scale_b, place(a.scale_b.rows(), g, 1),
                          place(a.scale_b.cols(), n, a.scale_b.cols() == a.columns() ? 1 : kScaleBlock)));
    }
    return all;
  }

 private:
  // Which of `count` scales place i has, where each serves `per` places or one serves all.
  static i32 place(i32 count, i32 i, i32 per) { return count == 1 ? 0 : i / per; }
  template <class Block>
  static float scale(Block& block, const Matrices& of, i32 row, i32 column) {
    return of.transposed ? block.row(of.data, column).get(row) : block.row(of.data, row).get(column);
  }
  static float code(const Matrices& of, i32 row, i32 column) {
    const i64 i = of.transposed ? column : row, j = of.transposed ? row : column;
    float values[4];
    decode_four(of.data.dtype, of.data.data[i * of.data.stride[0] + j], values);
    return values[0];
  }
};

}  // namespace scaled_mm
