// dlogits of stretches of rows, each element from its own logit.
namespace cross_entropy_backward {

#include "heddle/ops/cross_entropy/target.cuh"

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = 2;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kIn = Config::types().logits.dtype, kOut = Config::types().dlogits.dtype;

  static void run(const CrossEntropyBackward& a, const TensorMap*, u8*) {
    const i32 columns = a.logits.size[1];
    const Stretch stretch = Stretch::of_row(kWords * kThreads, a.logits);
    const i32 row = stretch.row;
    const Target target =
        target_of(Words{reinterpret_cast<const i32*>(a.target.data)},
                  Config::types().target.dtype == DType::kI64, row, columns, a.ignore_index);
    const float lse = reinterpret_cast<const float*>(a.lse.data)[row], s = a.label_smoothing;
    const float given =
        target.gain == 0.0f ? 0.0f : reinterpret_cast<const float*>(a.dloss.data)[row] * target.gain;
    float of_p = given * (1 + 2 * a.z_loss * lse);
    if (a.dlse.exists()) of_p += reinterpret_cast<const float*>(a.dlse.data)[row];
    const float less = given * s / float(columns), own = given * (1 - s);
    stretch.walk<kThreads, kWords>(
        [&](i64 at) {
          Eight<kIn> value;
          value.load(row_of(a.logits, row), at);
          return value;
        },
        [&](i64 at, const Eight<kIn>& value) {
          const i32 first = i32(8 * at);
          Eight<kOut>::of([&](i32 i) {
            const float z = capped(value.get(i), a.softcap);
            const float dz =
                fma(arch::exp2((z - lse) * kLog2E), of_p, -less) - (first + i == target.column ? own : 0.0f);
            return a.softcap > 0.0f ? dz * slope_of_cap(z, a.softcap) : dz;
          }).store(row_of(a.dlogits, row), at);
        });
  }

 private:
  struct Words {
    const i32* at;
    i32 get_int(i32 i) const { return at[i]; }
  };
};

}  // namespace cross_entropy_backward
