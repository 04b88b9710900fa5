// The norm of sums of rows, in registers.
namespace layer_norm_residual {

struct KernelConfig {
  static constexpr u32 kThreads = 256, kRowThreads = 256;
  static constexpr i32 kWords = 4;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kIn = Config::types().x.dtype, kResidual = Config::types().residual.dtype,
                         kWeight = Config::types().weight.dtype, kBias = Config::types().bias.dtype,
                         kSum = Config::types().sum.dtype, kOut = Config::types().y.dtype;
  static constexpr bool kHasBias = Config::types().bias.rank > 0;
  using Team = RowTeam<kThreads, Config::kRowThreads>;

  static void run(const LayerNormResidual& a, const TensorMap*, u8*) {
    const i32 row = Team::row(), eights = Team::eights(a.x);
    Eight<kIn> values[kWords];
    Eight<kResidual> residual[kWords];
    Eight<kSum> sums[kWords];
    Team::template each<kWords>(eights, [&](i32 n, i32 at) {
      values[n].load(row_of(a.x, row), at), residual[n].load(row_of(a.residual, row), at);
    });
    float total = 0, squares = 0;
    Team::template each<kWords>(eights, [&](i32 n, i32 at) {
      sums[n] = Eight<kSum>::of([&](i32 i) { return values[n].get(i) + residual[n].get(i); });
      sums[n].store(row_of(a.sum, row), at);
#pragma unroll
      for (i32 i = 0; i < 8; ++i) total += sums[n].get(i);
    });
    Eight<kWeight> weights[kWords];
    Eight<kBias> biases[kWords];
    Team::template each<kWords>(eights, [&](i32 n, i32 at) { weights[n].load_kept(a.weight.data, at); });
    if constexpr (kHasBias)
      Team::template each<kWords>(eights, [&](i32 n, i32 at) { biases[n].load_kept(a.bias.data, at); });
    const float mean = Team::reduce(Sum(), total) / float(8 * eights);
    Team::template each<kWords>(eights, [&](i32 n, i32) {
#pragma unroll
      for (i32 i = 0; i < 8; ++i) {
        const float off = sums[n].get(i) - mean;
        squares = fma(off, off, squares);
      }
    });
    const float scale = rsqrt(Team::reduce(Sum(), squares, 1) / float(8 * eights) + a.eps);
    Team::template each<kWords>(eights, [&](i32 n, i32 at) {
      Eight<kOut>::of([&](i32 i) {
        return fma((sums[n].get(i) - mean) * scale, weights[n].get(i), kHasBias ? biases[n].get(i) : 0.0f);
      }).store(row_of(a.y, row), at);
    });
  }
};

}  // namespace layer_norm_residual
