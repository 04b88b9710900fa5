// f(gate) * up, eight elements at a time.
namespace gated_product {

#include "heddle/ops/activation/activate.cuh"

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = 2, kKind = 0;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kGate = Config::types().gate.dtype, kUp = Config::types().up.dtype,
                         kY = Config::types().y.dtype;
  struct In {
    Eight<kGate> gate;
    Eight<kUp> up;
  };

  static void run(const GatedProduct& a, const TensorMap*, u8*) {
    const Stretch stretch = Stretch::of_cta(kWords * kThreads, a.gate, a.up, a.y);
    stretch.walk<kThreads, kWords>(
        [&](i64 at) {
          In in;
          in.gate.load(row_of(a.gate, stretch.row), at);
          in.up.load(row_of(a.up, stretch.row), at);
          return in;
        },
        [&](i64 at, const In& in) {
          Eight<kY>::of([&](i32 i) {
            return activate(Config::kKind, in.gate.get(i)) * in.up.get(i);
          }).store(row_of(a.y, stretch.row), at);
        });
  }
};

}  // namespace gated_product
