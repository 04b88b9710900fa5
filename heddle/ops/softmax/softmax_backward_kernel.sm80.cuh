// dx = y * (dy - sum of dy * y), with a row of both in registers.
namespace softmax_backward {

struct KernelConfig {
  static constexpr u32 kThreads = 256, kRowThreads = 256;
  static constexpr i32 kWords = 4;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kY = Config::types().y.dtype, kDy = Config::types().dy.dtype,
                         kDx = Config::types().dx.dtype;
  using Team = RowTeam<kThreads, Config::kRowThreads>;

  static void run(const SoftmaxBackward& a, const TensorMap*, u8*) {
    const i32 row = Team::row(), eights = a.y.size[1] / 8;
    if (row >= a.y.size[0]) return;
    Eight<kY> y[kWords];
    Eight<kDy> dy[kWords];
    Team::template each<kWords>(
        eights, [&](i32 n, i32 at) { y[n].load(row_of(a.y, row), at), dy[n].load(row_of(a.dy, row), at); });
    float sum = 0;
    Team::template each<kWords>(eights, [&](i32 n, i32) {
#pragma unroll
      for (i32 i = 0; i < 8; ++i) sum = fma(dy[n].get(i), y[n].get(i), sum);
    });
    sum = Team::reduce(Sum(), sum);
    Team::template each<kWords>(eights, [&](i32 n, i32 at) {
      Eight<kDx>::of([&](i32 i) { return y[n].get(i) * (dy[n].get(i) - sum); }).store(row_of(a.dx, row), at);
    });
  }
};

}  // namespace softmax_backward
