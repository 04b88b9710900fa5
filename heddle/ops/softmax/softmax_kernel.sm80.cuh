// Softmax of rows in registers, of longer ones in the shared memory of a cluster, and of those that it does not hold in two passes, of
// which the first keeps the maximum and the sum online (Milakov and Gimelshein, 2018).
namespace softmax {

struct KernelConfig {
  static constexpr u32 kThreads = 256, kRowThreads = 256;
  static constexpr i32 kWords = 4, kCluster = 1, kLoose = 0;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kIn = Config::types().x.dtype, kOut = Config::types().y.dtype;
  using Team = RowTeam<kThreads, Config::kRowThreads>;
  using Row = RowShare<Team, Config::kLoose>;
  template <DType kType>
  using Word = typename Row::template Word<kType>;

  static void run(const Softmax& a, const TensorMap*, u8*) {
    const i32 row = Team::row(), columns = Team::elements(a.x);
    const u8* const x = row_of(a.x, row);
    u8* const y = row_of(a.y, row);
    Word<kIn> values[kWords];
    Row::template each<kWords>(columns, [&](i32 n, i32 at) { values[n].load(x, at, columns); });
    float most = -1e38f, sum = 0;
    Row::template each<kWords>(columns, [&](i32 n, i32) {
#pragma unroll
      for (i32 i = 0; i < 8; ++i)
        if (values[n].has(i)) most = fmaxf(most, values[n].get(i));
    });
    Softsum all{Team::over_warp(Max(), most)};
    Row::template each<kWords>(columns, [&](i32 n, i32) {
#pragma unroll
      for (i32 i = 0; i < 8; ++i)
        if (values[n].has(i)) sum += arch::exp2((values[n].get(i) - all.top) * kLog2E);
    });
    all.sum = sum;
    all.join<Team>();
    const float scale = 1 / all.sum;
    Row::template each<kWords>(columns, [&](i32 n, i32 at) {
      Word<kOut>::of([&](i32 i) {
        return arch::exp2((values[n].get(i) - all.top) * kLog2E) * scale;
      }).store(y, at, columns);
    });
  }
};

template <class Config>
struct LongKernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kIn = Config::types().x.dtype, kOut = Config::types().y.dtype;
  using Team = RowTeam<kThreads, kThreads>;

  static void run(const Softmax& a, const TensorMap*, u8*) {
    const i32 row = Team::row(), eights = a.x.size[1] / 8;
    const u8* const x = row_of(a.x, row);
    u8* const y = row_of(a.y, row);
    const auto each_chunk = [&](auto&& use) {
#pragma unroll 1
      for (i32 begin = 0; begin < eights; begin += kWords * i32(kThreads)) {
        Eight<kIn> values[kWords];
        Team::template each<kWords>(eights - begin,
                                    [&](i32 n, i32 at) { values[n].load_kept(x, begin + at); });
        Team::template each<kWords>(eights - begin, [&](i32 n, i32 at) { use(values[n], begin + at); });
      }
    };
    Softsum all;
    each_chunk([&](const Eight<kIn>& value, i32) {
      float most = value.get(0);
#pragma unroll
      for (i32 i = 1; i < 8; ++i) most = fmaxf(most, value.get(i));
      all.add<8>(most, [&](i32 i) { return value.get(i); });
    });
    all.join<Team>();
    const float scale = 1 / all.sum;
    each_chunk([&](const Eight<kIn>& value, i32 at) {
      Eight<kOut>::of([&](i32 i) {
        return arch::exp2((value.get(i) - all.top) * kLog2E) * scale;
      }).store(y, at);
    });
  }
};

template <class Config>
struct ClusterKernel {
  static constexpr u32 kThreads = Config::kThreads, kCtas = 3;
  static constexpr DType kIn = Config::types().x.dtype, kOut = Config::types().y.dtype;
  using Part = ClusterPart<kThreads, Config::kCluster>;

  static void run(const Softmax& a, const TensorMap*, u8*) {
    const Part part(a.x.size[1] / 8);
    const auto kept = part.template kept<kIn>();
    const u8* const x = row_of(a.x, Part::row());
    u8* const y = row_of(a.y, Part::row());
    Softsum all;
    part.bring([&](i32 i, i32 at) { kept.copy(x, i, at); },
               [&](i32 i) {
                 const Eight<kIn> value = kept.get(i);
                 float most = value.get(0);
#pragma unroll
                 for (i32 n = 1; n < 8; ++n) most = fmaxf(most, value.get(n));
                 all.add<8>(most, [&](i32 n) { return value.get(n); });
               });
    all.join<typename Part::Team>();
    all.join_cluster(part);
    const float scale = 1 / all.sum;
    part.each([&](i32 i, i32 at) {
      const Eight<kIn> value = kept.get(i);
      Eight<kOut>::of([&](i32 n) {
        return arch::exp2((value.get(n) - all.top) * kLog2E) * scale;
      }).store(y, at);
    });
    part.leave();
  }
};

}  // namespace softmax
