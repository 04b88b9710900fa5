// The sum, maximum or mean of each row, read once.
namespace reduce {

struct KernelConfig {
  static constexpr u32 kThreads = 256, kRowThreads = 256;
  static constexpr i32 kWords = 4, kKind = kReduceSum;
};

template <class Config, u32 kRowThreads = Config::kRowThreads>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kIn = Config::types().x.dtype, kOut = Config::types().y.dtype;
  static constexpr bool kOfMax = Config::kKind == kReduceMax;
  using Team = RowTeam<kThreads, kRowThreads>;

  static void run(const Reduce& a, const TensorMap*, u8*) {
    const i32 row = Team::row(), eights = a.x.size[1] / 8;
    if (row >= a.x.size[0]) return;
    const u8* const x = row_of(a.x, row);
    float mine = kOfMax ? identity(Max()) : 0.0f;
#pragma unroll 1
    for (i32 begin = 0; begin < eights; begin += kWords * i32(kRowThreads)) {
      Eight<kIn> values[kWords];
      Team::template each<kWords>(eights - begin, [&](i32 n, i32 at) { values[n].load(x, begin + at); });
      Team::template each<kWords>(eights - begin, [&](i32 n, i32) {
        float eight[8];
#pragma unroll
        for (i32 i = 0; i < 8; ++i) eight[i] = values[n].get(i);
#pragma unroll
        for (i32 half = 4; half > 0; half /= 2)
#pragma unroll
          for (i32 i = 0; i < half; ++i)
            eight[i] = kOfMax ? combine(Max(), eight[i], eight[i + half]) : eight[i] + eight[i + half];
        mine = kOfMax ? combine(Max(), mine, eight[0]) : mine + eight[0];
      });
    }
    const float all = kOfMax ? Team::reduce(Max(), mine) : Team::reduce(Sum(), mine);
    if (Team::thread() == 0)
      store_element(kOut, a.y.data, row, Config::kKind == kReduceMean ? all / float(8 * eights) : all);
  }
};

template <class Config>
struct LongKernel : Kernel<Config, Config::kThreads> {};

}  // namespace reduce
