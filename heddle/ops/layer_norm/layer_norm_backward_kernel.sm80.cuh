// dx of rows in registers. A CTA has the rows of one part and keeps its sums of dweight and dbias in registers.
namespace layer_norm_backward {

struct KernelConfig {
  static constexpr u32 kThreads = 512, kRowThreads = 512;
  static constexpr i32 kWords = 2;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kX = Config::types().x.dtype, kWeight = Config::types().weight.dtype,
                         kDy = Config::types().dy.dtype, kDsum = Config::types().dsum.dtype,
                         kDx = Config::types().dx.dtype;
  using Team = RowTeam<kThreads, kThreads>;

  static void run(const LayerNormBackward& a, const TensorMap*, u8*) {
    const i32 eights = a.x.size[1] / 8, first = i32(blockIdx.x) * a.part_rows;
    const i32 end = first + a.part_rows < a.x.size[0] ? first + a.part_rows : a.x.size[0];
    const float each = 1 / float(8 * eights);
    float dweight[kWords][8] = {}, dbias[kWords][8] = {};
    Eight<kWeight> weights[kWords];
    Team::template each<kWords>(eights, [&](i32 n, i32 at) { weights[n].load_kept(a.weight.data, at); });
#pragma unroll 1
    for (i32 row = first; row < end; ++row) {
      Eight<kX> x[kWords];
      Eight<kDy> dy[kWords];
      Team::template each<kWords>(
          eights, [&](i32 n, i32 at) { x[n].load(row_of(a.x, row), at), dy[n].load(row_of(a.dy, row), at); });
      float sums[2] = {},
            products[2] = {};  // of x and g = dy * weight; of the square of x - mean, and of it times g
      Team::template each<kWords>(eights, [&](i32 n, i32) {
#pragma unroll
        for (i32 i = 0; i < 8; ++i) {
          sums[0] += x[n].get(i);
          sums[1] = fma(dy[n].get(i), weights[n].get(i), sums[1]);
        }
      });
      Team::reduce(Sum(), sums, 0);
      const float mean = sums[0] * each, given = sums[1] * each;
      Team::template each<kWords>(eights, [&](i32 n, i32) {
#pragma unroll
        for (i32 i = 0; i < 8; ++i) {
          const float off = x[n].get(i) - mean;
          products[0] = fma(off, off, products[0]);
          products[1] = fma(off, dy[n].get(i) * weights[n].get(i), products[1]);
        }
      });
      Team::reduce(Sum(), products, 1);
      const float scale = rsqrt(products[0] * each + a.eps), along = products[1] * each * scale;
      Team::template each<kWords>(eights, [&](i32 n, i32 at) {
        Eight<kDsum> more;
        if (a.dsum.exists()) more.load(row_of(a.dsum, row), at);
        Eight<kDx>::of([&](i32 i) {
          const float z = (x[n].get(i) - mean) * scale;
          return fma(dy[n].get(i) * weights[n].get(i) - given - z * along, scale, more.get(i));
        }).store(row_of(a.dx, row), at);
#pragma unroll
        for (i32 i = 0; i < 8; ++i) {
          dweight[n][i] = fma(dy[n].get(i), (x[n].get(i) - mean) * scale, dweight[n][i]);
          dbias[n][i] += dy[n].get(i);
        }
      });
    }
    const i32 part = i32(blockIdx.x);
    Team::template each<kWords>(eights, [&](i32 n, i32 at) {
      Eight<DType::kF32>::of([&](i32 i) { return dweight[n][i]; }).store(row_of(a.dweight_parts, part), at);
      Eight<DType::kF32>::of([&](i32 i) { return dbias[n][i]; }).store(row_of(a.dbias_parts, part), at);
    });
  }
};

}  // namespace layer_norm_backward
