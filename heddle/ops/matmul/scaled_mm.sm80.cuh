// Tile body of scaled_mm on a GPU. With scales of blocks, each thread multiplies its own elements: it serves what the whole kernel
// leaves. (Products of squares in a loop over blocks keep NVRTC 13.0 busy for more than 20 minutes.) Included once per device
// program, after scaled_mm.cuh.
namespace scaled_mm {

struct DeviceBody {
  template <class Block>
  static __forceinline__ void run(Block& block, const ScaledMm& a, const TileCoord& t) {
    if (a.groups() == 1) return with_one_scale(block, a, t);
    block.inputs();
    const i32 columns = t[3] - t[2];
    auto sums = block.scratch(block.rows(t) * columns);
    for (i32 g = 0; g < a.groups(); ++g) {
      Body::each_block(block, a, t, g, [&](i32 m, i32 c, auto i, auto scale) {
        auto sum = sums.from(m * columns + c);
        const auto value = product(block, a, t[0] + m, t[2] + c, i, g) * scale;
        sum.store(i, g == 0 ? value : sum.load(i) + value);
      });
      block.sync();
    }
    Body::store(block, a, t, sums);
  }

  // Inlined, so that a kernel's facts about the arguments reach the product.
  template <class Block>
  static __forceinline__ void with_one_scale(Block& block, const ScaledMm& a, const TileCoord& t) {
    block.inputs();
    auto part = block.fragment(t[0], block.rows(t), t[2], t[3] - t[2]);
    block.mma(part, a.a.matrix(), a.b.matrix());
    block.sync();
    Body::store_scaled(block, a, t, part);
  }

  // The sum over the k of group g for row m and column c + i.
  template <class Block, class Index>
  static auto product(Block& block, const ScaledMm& a, i32 m, i32 c, Index i, i32 g) {
    const auto right = [&](i32 k) {
      const Tensor& b = a.b.data;
      return a.b.transposed ? block.row(b, c).from(k).every(b.stride[0]).load(i)
                            : block.row(b, k).from(c).load(i);
    };
    const auto left = [&](i32 k) {
      return a.a.transposed ? block.row(a.a.data, k).get(m) : block.row(a.a.data, m).get(k);
    };
    const i32 begin = g * kScaleBlock, end = min(begin + kScaleBlock, a.a.cols());
    auto sum = right(begin) * left(begin);
    for (i32 k = begin + 1; k < end; ++k) sum = sum + right(k) * left(k);
    return sum;
  }
};

}  // namespace scaled_mm
