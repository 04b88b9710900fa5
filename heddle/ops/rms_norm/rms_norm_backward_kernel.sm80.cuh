// dx of rows in registers. A CTA has the rows of one part and keeps its sum of dweight in registers; the next row is on its way while
// this one is worked on.
namespace rms_norm_backward {

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
  static constexpr bool kHasSum = Config::types().dsum.rank > 0;
  using Team = RowTeam<kThreads, kThreads>;

  static void run(const RmsNormBackward& a, const TensorMap*, u8*) {
    const i32 eights = a.x.size[1] / 8, rows = a.rows_in_part(), first = i32(blockIdx.x) * rows;
    const i32 end = first + rows < a.x.size[0] ? first + rows : a.x.size[0];
    float parts[kWords][8] = {};
    Eight<kWeight> weights[kWords];
    Eight<kX> x[kWords], next_x[kWords];
    Eight<kDy> dy[kWords], next_dy[kWords];
    const auto fetch = [&](i32 row) {
      Team::template each<kWords>(eights, [&](i32 n, i32 at) {
        next_x[n].load(row_of(a.x, row), at), next_dy[n].load(row_of(a.dy, row), at);
      });
    };
    fetch(first);
    Team::template each<kWords>(eights, [&](i32 n, i32 at) { weights[n].load_kept(a.weight.data, at); });
#pragma unroll 1
    for (i32 row = first; row < end; ++row) {
#pragma unroll
      for (i32 n = 0; n < kWords; ++n) x[n] = next_x[n], dy[n] = next_dy[n];
      if (row + 1 < end) fetch(row + 1);
      float sums[2] = {};  // sums of squares, and of x * dy * weight
      Team::template each<kWords>(eights, [&](i32 n, i32) {
#pragma unroll
        for (i32 i = 0; i < 8; ++i) {
          sums[0] = fma(x[n].get(i), x[n].get(i), sums[0]);
          sums[1] = fma(x[n].get(i), dy[n].get(i) * weights[n].get(i), sums[1]);
        }
      });
      Team::reduce(Sum(), sums, u32(row));
      const float scale = rsqrt(sums[0] / float(8 * eights) + a.eps);
      const float along = sums[1] / float(8 * eights) * scale * scale;
      Team::template each<kWords>(eights, [&](i32 n, i32 at) {
        Eight<kDsum> more;
        if constexpr (kHasSum) more.load(row_of(a.dsum, row), at);
        Eight<kDx>::of([&](i32 i) {
          return fma(dy[n].get(i) * weights[n].get(i) - x[n].get(i) * along, scale,
                     kHasSum ? more.get(i) : 0.0f);
        }).store(row_of(a.dx, row), at);
#pragma unroll
        for (i32 i = 0; i < 8; ++i) parts[n][i] = fma(dy[n].get(i), x[n].get(i) * scale, parts[n][i]);
      });
    }
    Team::template each<kWords>(eights, [&](i32 n, i32 at) {
      Eight<DType::kF32>::of([&](i32 i) {
        return parts[n][i];
      }).store(row_of(a.dweight_parts, i32(blockIdx.x)), at);
    });
  }
};

}  // namespace rms_norm_backward
