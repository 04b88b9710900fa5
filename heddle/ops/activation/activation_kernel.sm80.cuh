// An activation, eight elements at a time.
namespace activation {

#include "heddle/ops/activation/activate.cuh"

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = 2, kKind = 0;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kX = Config::types().x.dtype, kY = Config::types().y.dtype;
  using Row =
      RowShare<RowTeam<kThreads, kThreads>, kX == DType::kF32 || kY == DType::kF32 ? kTwoFours : kEights>;

  static void run(const Activation& a, const TensorMap*, u8*) {
    const Stretch stretch = Stretch::of_cta(kWords * kThreads, a.x, a.y);
    const i32 count = stretch.elements();
    const u8* const x = stretch.place(a.x);
    u8* const y = stretch.place(a.y);
    typename Row::template Word<kX> in[kWords];
    Row::template each<kWords>(count, [&](i32 n, i32 at) { in[n].load(x, at, count); });
    Row::template each<kWords>(count, [&](i32 n, i32 at) {
      Row::template Word<kY>::of([&](i32 i) {
        return activate(Config::kKind, in[n].get(i));
      }).store(y, at, count);
    });
  }
};

}  // namespace activation
