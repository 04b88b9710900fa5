// dx of rows in registers. A CTA has the rows of one part and keeps its sums of dweight and dbias in registers; the next two rows
// are on their way while this one is worked on.
namespace layer_norm_backward {

struct KernelConfig {
  static constexpr u32 kThreads = 512, kRowThreads = 512;
  static constexpr i32 kWords = 2;
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
  using Team = RowTeam<kThreads, kThreads>;

  // A row of x and dy; rows past the end are zeros.
  struct Rows {
    Eight<kX> x[kWords];
    Eight<kDy> dy[kWords];

    void load(const LayerNormBackward& a, i32 row, i32 end, i32 eights) {
      if (row >= end) return;
      Team::template each<kWords>(
          eights, [&](i32 n, i32 at) { x[n].load(row_of(a.x, row), at), dy[n].load(row_of(a.dy, row), at); });
    }
    void add(const Eight<kWeight> (&weights)[kWords], i32 eights, float& of_x, float& of_g) const {
      Team::template each<kWords>(eights, [&](i32 n, i32) {
#pragma unroll
        for (i32 i = 0; i < 8; ++i) of_x += x[n].get(i), of_g = fma(dy[n].get(i), weights[n].get(i), of_g);
      });
    }
  };

  static void run(const LayerNormBackward& a, const TensorMap*, u8*) {
    const i32 eights = a.x.size[1] / 8, rows = a.rows_in_part(), first = i32(blockIdx.x) * rows;
    const i32 end = first + rows < a.x.size[0] ? first + rows : a.x.size[0];
    const float share = 1 / float(8 * eights);
    float dweight[kWords][8] = {}, dbias[kWords][8] = {};
    Eight<kWeight> weights[kWords];
    Rows now, next, after;
    now.load(a, first, end, eights);
    next.load(a, first + 1, end, eights);
    Team::template each<kWords>(eights, [&](i32 n, i32 at) { weights[n].load_kept(a.weight.data, at); });
    float sums[2] = {};  // sums of x, and of g = dy * weight
    now.add(weights, eights, sums[0], sums[1]);
    Team::reduce(Sum(), sums, 0);
    float mean = sums[0] * share, given = sums[1] * share;
#pragma unroll 1
    for (i32 row = first; row < end; ++row) {
      after.load(a, row + 2, end, eights);
      // Sums of the square of x - mean, and of it times g; then the next row's sums: one barrier serves both rows.
      float all[4] = {};
      Team::template each<kWords>(eights, [&](i32 n, i32) {
#pragma unroll
        for (i32 i = 0; i < 8; ++i) {
          const float off = now.x[n].get(i) - mean;
          all[0] = fma(off, off, all[0]);
          all[1] = fma(off, now.dy[n].get(i) * weights[n].get(i), all[1]);
        }
      });
      next.add(weights, eights, all[2], all[3]);
      Team::reduce(Sum(), all, u32(row));
      const float scale = rsqrt(all[0] * share + a.eps), along = all[1] * share * scale;
      Team::template each<kWords>(eights, [&](i32 n, i32 at) {
        Eight<kDsum> more;
        if constexpr (kHasSum) more.load(row_of(a.dsum, row), at);
        Eight<kDx>::of([&](i32 i) {
          const float z = (now.x[n].get(i) - mean) * scale;
          return fma(now.dy[n].get(i) * weights[n].get(i) - given - z * along, scale,
                     kHasSum ? more.get(i) : 0.0f);
        }).store(row_of(a.dx, row), at);
#pragma unroll
        for (i32 i = 0; i < 8; ++i) {
          dweight[n][i] = fma(now.dy[n].get(i), (now.x[n].get(i) - mean) * scale, dweight[n][i]);
          dbias[n][i] += now.dy[n].get(i);
        }
      });
      mean = all[2] * share, given = all[3] * share;
      now = next, next = after;
    }
    const i32 part = i32(blockIdx.x);
    Team::template each<kWords>(eights, [&](i32 n, i32 at) {
      Eight<DType::kF32>::of([&](i32 i) { return dweight[n][i]; }).store(row_of(a.dweight_parts, part), at);
      Eight<DType::kF32>::of([&](i32 i) { return dbias[n][i]; }).store(row_of(a.dbias_parts, part), at);
    });
  }
};

}  // namespace layer_norm_backward
