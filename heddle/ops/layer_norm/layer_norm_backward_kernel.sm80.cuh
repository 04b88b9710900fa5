// dx of rows in registers. A CTA, or a cluster for wide rows, has the rows of one part and keeps its sums of dweight and dbias in
// registers; the next rows are on their way while this one is worked on.
namespace layer_norm_backward {

struct KernelConfig {
  static constexpr u32 kThreads = 512, kRowThreads = 512;
  static constexpr i32 kWords = 2, kCluster = 1, kPlaces = 4;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr u32 kCtas = kThreads < 512 ? 512 / kThreads : 1;  // at most 128 registers
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kX = Config::types().x.dtype, kWeight = Config::types().weight.dtype,
                         kDy = Config::types().dy.dtype, kDsum = Config::types().dsum.dtype,
                         kDx = Config::types().dx.dtype;
  static constexpr bool kHasSum = Config::types().dsum.rank > 0;
  using Team = RowTeam<kThreads, kThreads, Config::kCluster>;

  static constexpr i32 kPlaces = Config::kPlaces;
  using Ahead = PartAhead<Team, kThreads, kWords, kPlaces, kX, kDy>;

  static void run(const LayerNormBackward& a, const TensorMap*, u8*) {
    const i32 part = i32(blockIdx.x / Config::kCluster);
    const i32 eights = a.x.size[1] / 8, rows = rows_in_part(a.x.size[0], a.parts(), part);
    const Ahead ahead{a.x, a.dy, part, a.parts(), rows};
    const float share = 1 / float(8 * eights);
    float dweight[kWords][8] = {}, dbias[kWords][8] = {};
    Eight<kWeight> weights[kWords];
    const auto add = [&](i32 row, float& of_x, float& of_g) {
      if (row >= rows) return;
      Team::template each<kWords>(eights, [&](i32 n, i32) {
        const Eight<kX> x = Ahead::X::get(row, n);
        const Eight<kDy> dy = Ahead::Dy::get(row, n);
#pragma unroll
        for (i32 i = 0; i < 8; ++i) of_x += x.get(i), of_g = fma(dy.get(i), weights[n].get(i), of_g);
      });
    };
    ahead.fetch_first();
    Team::template each<kWords>(eights, [&](i32 n, i32 at) { weights[n].load_kept(a.weight.data, at); });
    Team::meet();
    float sums[2] = {};  // sums of x, and of g = dy * weight
    arch::wait_copies(kPlaces - 2);
    add(0, sums[0], sums[1]);
    Team::reduce(Sum(), sums, 0);
    float mean = sums[0] * share, given = sums[1] * share;
#pragma unroll 1
    for (i32 row = 0; row < rows; ++row) {
      ahead.fetch(row + kPlaces - 1);
      arch::wait_copies(kPlaces - 2);
      Eight<kX> x[kWords];
      Eight<kDy> dy[kWords];
      ahead.get(row, x, dy);
      // Sums of the square of x - mean, and of it times g; then the next row's sums: one barrier serves both rows.
      float all[4] = {};
      Team::template each<kWords>(eights, [&](i32 n, i32) {
#pragma unroll
        for (i32 i = 0; i < 8; ++i) {
          const float off = x[n].get(i) - mean;
          all[0] = fma(off, off, all[0]);
          all[1] = fma(off, dy[n].get(i) * weights[n].get(i), all[1]);
        }
      });
      add(row + 1, all[2], all[3]);
      Team::reduce(Sum(), all, 1 + u32(row));
      const float scale = rsqrt(all[0] * share + a.eps), along = all[1] * share * scale;
      Team::template each<kWords>(eights, [&](i32 n, i32 at) {
        Eight<kDsum> more;
        if constexpr (kHasSum) more.load(row_of(a.dsum, ahead.number(row)), at);
        Eight<kDx>::of([&](i32 i) {
          const float z = (x[n].get(i) - mean) * scale;
          return fma(dy[n].get(i) * weights[n].get(i) - given - z * along, scale,
                     kHasSum ? more.get(i) : 0.0f);
        }).store(row_of(a.dx, ahead.number(row)), at);
#pragma unroll
        for (i32 i = 0; i < 8; ++i) {
          dweight[n][i] = fma(dy[n].get(i), (x[n].get(i) - mean) * scale, dweight[n][i]);
          dbias[n][i] += dy[n].get(i);
        }
      });
      mean = all[2] * share, given = all[3] * share;
    }
    Team::template each<kWords>(eights, [&](i32 n, i32 at) {
      Eight<DType::kF32>::of([&](i32 i) { return dweight[n][i]; }).store(row_of(a.dweight_parts, part), at);
      Eight<DType::kF32>::of([&](i32 i) { return dbias[n][i]; }).store(row_of(a.dbias_parts, part), at);
    });
  }
};

}  // namespace layer_norm_backward
