// dx of rows in registers. A CTA, or a cluster for wide rows, has the rows of one part and keeps its sums of dweight and dbias in
// registers; the next rows are on their way while these are worked on.
namespace layer_norm_backward {

struct KernelConfig {
  static constexpr u32 kThreads = 512, kRowThreads = 512;
  static constexpr i32 kWords = 2, kCluster = 1, kPlaces = 4, kShare = kEights;
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
  using Team = RowTeam<kThreads, Config::kRowThreads, Config::kCluster>;
  using Row = RowShare<Team, Config::kShare>;
  template <DType kType>
  using Word = typename Row::template Word<kType>;
  using Ahead = PartAhead<Team, Config::kShare == kElements, kThreads, kWords, Config::kPlaces, 2, kX, kDy>;

  static void run(const LayerNormBackward& a, const TensorMap*, u8*) {
    Ahead ahead{a.x, a.dy, i32(blockIdx.x / Config::kCluster), a.parts()};
    const i32 columns = a.x.size[1], steps = ahead.steps;
    const float share = 1 / float(columns);
    float dweight[kWords][8] = {}, dbias[kWords][8] = {};
    Word<kWeight> weights[kWords];
    const auto add = [&](i32 step, float& of_x, float& of_g) {
      if (step >= steps) return;
      ahead.each(step, [&](i32 n, const auto& x, const auto& dy) {
#pragma unroll
        for (i32 i = 0; i < 8; ++i) of_x += x.get(i), of_g = fma(dy.get(i), weights[n].get(i), of_g);
      });
    };
    ahead.fetch_first();
    Row::template each<kWords>(columns,
                               [&](i32 n, i32 at) { weights[n].load_kept(a.weight.data, at, columns); });
    Team::meet();
    float sums[2] = {};  // sums of x, and of g = dy * weight
    ahead.wait();
    add(0, sums[0], sums[1]);
    Team::reduce(Sum(), sums, 0);
    float mean = sums[0] * share, given = sums[1] * share;
#pragma unroll 1
    for (i32 step = 0; step < steps; ++step) {
      Word<kX> x[kWords];
      Word<kDy> dy[kWords];
      ahead.take(step, x, dy);
      const i32 row = ahead.number(step), elements = ahead.elements(step);
      // Sums of the square of x - mean, and of it times g; then the next step's sums: one barrier serves both.
      float all[4] = {};
      Row::template each<kWords>(elements, [&](i32 n, i32) {
#pragma unroll
        for (i32 i = 0; i < 8; ++i) {
          const float off = x[n].has(i) ? x[n].get(i) - mean : 0.0f;
          all[0] = fma(off, off, all[0]);
          all[1] = fma(off, dy[n].get(i) * weights[n].get(i), all[1]);
        }
      });
      add(step + 1, all[2], all[3]);
      Team::reduce(Sum(), all, 1 + u32(step));
      const float scale = rsqrt(all[0] * share + a.eps), along = all[1] * share * scale;
      Row::template each<kWords>(elements, [&](i32 n, i32 at) {
        Word<kDsum> more;
        if constexpr (kHasSum) more.load(row_of(a.dsum, row), at, columns);
        Word<kDx>::of([&](i32 i) {
          const float z = (x[n].get(i) - mean) * scale;
          return fma(dy[n].get(i) * weights[n].get(i) - given - z * along, scale,
                     kHasSum ? more.get(i) : 0.0f);
        }).store(row_of(a.dx, row), at, columns);
#pragma unroll
        for (i32 i = 0; i < 8; ++i) {
          dweight[n][i] = fma(dy[n].get(i), (x[n].get(i) - mean) * scale, dweight[n][i]);
          dbias[n][i] += dy[n].get(i);
        }
      });
      mean = all[2] * share, given = all[3] * share;
    }
    ahead.template store<Row>(a.dweight_parts, dweight);
    ahead.template store<Row>(a.dbias_parts, dbias);
  }
};

}  // namespace layer_norm_backward
