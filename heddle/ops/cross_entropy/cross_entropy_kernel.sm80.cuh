// The loss of rows, in one pass: the maximum and the sum of weights are kept online (Milakov and Gimelshein, 2018).
namespace cross_entropy {

#include "heddle/ops/cross_entropy/target.cuh"

struct KernelConfig {
  static constexpr u32 kThreads = 512, kRowThreads = 512;
  static constexpr i32 kWords = 4;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kIn = Config::types().logits.dtype;
  static constexpr u32 kRowThreads = Config::kRowThreads < kThreads ? Config::kRowThreads : kThreads;
  using Team = RowTeam<kThreads, kRowThreads>;

  static void run(const CrossEntropy& a, const TensorMap*, u8*) {
    const i32 row = Team::row(), columns = a.logits.size[1], eights = Team::eights(a.logits);
    const u8* const x = row_of(a.logits, row);
    Softsum all;
    float sum = 0;
    const auto add = [&](auto&& get) {
      float most = get(0), total = get(0);
#pragma unroll
      for (i32 i = 1; i < 8; ++i) most = fmaxf(most, get(i)), total += get(i);
      all.add<8>(most, get);
      sum += total;
    };
#pragma unroll 1
    for (i32 begin = 0; begin < eights; begin += kWords * i32(kRowThreads)) {
      Eight<kIn> values[kWords];
      Team::template each<kWords>(eights - begin, [&](i32 n, i32 at) { values[n].load(x, begin + at); });
      Team::template each<kWords>(eights - begin, [&](i32 n, i32) {
        if (a.softcap > 0) {
          float z[8];
#pragma unroll
          for (i32 i = 0; i < 8; ++i) z[i] = capped(values[n].get(i), a.softcap);
          add([&](i32 i) { return z[i]; });
        } else {
          add([&](i32 i) { return values[n].get(i); });
        }
      });
    }
    all.join<Team>();
    if (a.label_smoothing != 0.0f) sum = Team::reduce(Sum(), sum);
    if (Team::thread() > 0 || eights == 0) return;
    const i32* words = reinterpret_cast<const i32*>(a.target.data);
    const Target target =
        target_of(Words{words}, Config::types().target.dtype == DType::kI64, row, columns, a.ignore_index);
    const float lse = all.top + logf(all.sum), s = a.label_smoothing;
    const float own = target.column < 0 ? 0.0f : capped(load_element(kIn, x, target.column), a.softcap);
    const float loss = lse - (1 - s) * own - s * (sum / float(columns)) + a.z_loss * lse * lse;
    reinterpret_cast<float*>(a.loss.data)[row] = target.gain == 0.0f ? 0.0f : loss * target.gain;
    reinterpret_cast<float*>(a.lse.data)[row] = lse;
  }

 private:
  struct Words {
    const i32* at;
    i32 get_int(i32 i) const { return at[i]; }
  };
};

}  // namespace cross_entropy
