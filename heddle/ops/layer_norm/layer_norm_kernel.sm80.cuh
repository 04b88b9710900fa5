// The norm of rows that lie in registers.
namespace layer_norm {

struct KernelConfig {
  static constexpr u32 kThreads = 256, kRowThreads = 256;
  static constexpr i32 kWords = 4, kCluster = 1, kShare = kEights;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kIn = Config::types().x.dtype, kWeight = Config::types().weight.dtype,
                         kBias = Config::types().bias.dtype, kOut = Config::types().y.dtype;
  static constexpr bool kHasBias = Config::types().bias.rank > 0;
  using Team = RowTeam<kThreads, Config::kRowThreads, Config::kCluster>;
  using Row = RowShare<Team, Config::kShare>;
  template <DType kType>
  using Word = typename Row::template Word<kType>;

  // Weights of wide rows come when they are needed: with fewer registers, a multiprocessor has more rows at once.
  static constexpr bool kLate = (kThreads >= 512 || Config::kCluster > 1) &&
                                kWords * 8 * (Config::kShare == kElements ? 4 : size_of(kIn)) >= 64;
  static constexpr u32 kCtas = kLate && kThreads < 1024 ? 1024 / kThreads : 1;

  static void run(const LayerNorm& a, const TensorMap*, u8*) {
    const i32 row = Team::row(), columns = Team::elements(a.x);
    Word<kIn> values[kWords];
    Word<kWeight> weights[kWords];
    Word<kBias> biases[kWords];  // zeros where there is none
    Row::template each<kWords>(columns,
                               [&](i32 n, i32 at) { values[n].load(row_of(a.x, row), at, columns); });
    const auto load_weights = [&](i32 n, i32 at) {
      weights[n].load_kept(a.weight.data, at, columns);
      if constexpr (kHasBias) biases[n].load_kept(a.bias.data, at, columns);
    };
    if constexpr (!kLate) Row::template each<kWords>(columns, load_weights);
    Team::meet();
    float total = 0, squares = 0;
    Row::template each<kWords>(columns, [&](i32 n, i32) {
#pragma unroll
      for (i32 i = 0; i < 8; ++i) total += values[n].get(i);
    });
    const float mean = Team::reduce(Sum(), total) / float(columns);
    Row::template each<kWords>(columns, [&](i32 n, i32) {
#pragma unroll
      for (i32 i = 0; i < 8; ++i) {
        const float off = values[n].has(i) ? values[n].get(i) - mean : 0.0f;
        squares = fma(off, off, squares);
      }
    });
    const float scale = rsqrt(Team::reduce(Sum(), squares, 1) / float(columns) + a.eps);
    Row::template each<kWords>(columns, [&](i32 n, i32 at) {
      if constexpr (kLate) load_weights(n, at);
      Word<kOut>::of([&](i32 i) {
        return fma((values[n].get(i) - mean) * scale, weights[n].get(i), kHasBias ? biases[n].get(i) : 0.0f);
      }).store(row_of(a.y, row), at, columns);
    });
  }
};

}  // namespace layer_norm
