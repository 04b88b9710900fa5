// dx of rows in registers. A CTA, or a cluster for wide rows, has the rows of one part and keeps its sum of dweight in registers; the
// next rows are on their way while this one is worked on.
namespace rms_norm_backward {

struct KernelConfig {
  static constexpr u32 kThreads = 512, kRowThreads = 512;
  static constexpr i32 kWords = 2, kCluster = 1, kPlaces = 4;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kX = Config::types().x.dtype, kWeight = Config::types().weight.dtype,
                         kDy = Config::types().dy.dtype, kDsum = Config::types().dsum.dtype,
                         kDx = Config::types().dx.dtype;
  static constexpr bool kHasSum = Config::types().dsum.rank > 0;
  using Team = RowTeam<kThreads, kThreads, Config::kCluster>;
  static constexpr i32 kPlaces = Config::kPlaces;
  using Ahead = PartAhead<Team, kThreads, kWords, kPlaces, kX, kDy>;

  static void run(const RmsNormBackward& a, const TensorMap*, u8*) {
    const i32 part = i32(blockIdx.x / Config::kCluster);
    const i32 eights = a.x.size[1] / 8, rows = rows_in_part(a.x.size[0], a.parts(), part);
    const Ahead ahead{a.x, a.dy, part, a.parts(), rows};
    float parts[kWords][8] = {};
    Eight<kWeight> weights[kWords];
    ahead.fetch_first();
    Team::template each<kWords>(eights, [&](i32 n, i32 at) { weights[n].load_kept(a.weight.data, at); });
    Team::meet();
#pragma unroll 1
    for (i32 row = 0; row < rows; ++row) {
      ahead.fetch(row + kPlaces - 1);
      arch::wait_copies(kPlaces - 1);
      Eight<kX> x[kWords];
      Eight<kDy> dy[kWords];
      ahead.get(row, x, dy);
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
        if constexpr (kHasSum) more.load(row_of(a.dsum, ahead.number(row)), at);
        Eight<kDx>::of([&](i32 i) {
          return fma(dy[n].get(i) * weights[n].get(i) - x[n].get(i) * along, scale,
                     kHasSum ? more.get(i) : 0.0f);
        }).store(row_of(a.dx, ahead.number(row)), at);
#pragma unroll
        for (i32 i = 0; i < 8; ++i) parts[n][i] = fma(dy[n].get(i), x[n].get(i) * scale, parts[n][i]);
      });
    }
    Team::template each<kWords>(eights, [&](i32 n, i32 at) {
      Eight<DType::kF32>::of([&](i32 i) { return parts[n][i]; }).store(row_of(a.dweight_parts, part), at);
    });
  }
};

}  // namespace rms_norm_backward
