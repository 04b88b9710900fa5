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
  struct In {
    Eight<kX> x;
  };

  static void run(const Activation& a, const TensorMap*, u8*) {
    const Stretch stretch = Stretch::of_cta(kWords * kThreads, a.x, a.y);
    stretch.walk<kThreads, kWords>(
        [&](i64 at) {
          In in;
          in.x.load(row_of(a.x, stretch.row), at);
          return in;
        },
        [&](i64 at, const In& in) {
          Eight<kY>::of([&](i32 i) {
            return activate(Config::kKind, in.x.get(i));
          }).store(row_of(a.y, stretch.row), at);
        });
  }
};

}  // namespace activation
