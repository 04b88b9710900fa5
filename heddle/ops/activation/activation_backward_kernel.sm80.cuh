// The gradient of an activation, eight elements at a time.
namespace activation_backward {

#include "heddle/ops/activation/activate.cuh"

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = 2, kKind = 0;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kX = Config::types().x.dtype, kDy = Config::types().dy.dtype,
                         kDx = Config::types().dx.dtype;
  struct In {
    Eight<kX> x;
    Eight<kDy> dy;
  };

  static void run(const ActivationBackward& a, const TensorMap*, u8*) {
    const Stretch stretch = Stretch::of_cta(kWords * kThreads, a.x, a.dy, a.dx);
    stretch.walk<kThreads, kWords>(
        [&](i64 at) {
          In in;
          in.x.load(row_of(a.x, stretch.row), at);
          in.dy.load(row_of(a.dy, stretch.row), at);
          return in;
        },
        [&](i64 at, const In& in) {
          Eight<kDx>::of([&](i32 i) {
            return in.dy.get(i) * activation_slope(Config::kKind, in.x.get(i));
          }).store(row_of(a.dx, stretch.row), at);
        });
  }
};

}  // namespace activation_backward
