// Norms of rows that lie in registers: (x - mean) / sqrt(variance + eps) * weight + bias.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/row_share.cuh"
#include "heddle/kit/rows/row_team.cuh"
#include "heddle/kit/rows/vec8.cuh"

namespace heddle::device {

struct NormConfig {
  static constexpr u32 kThreads = 256, kRowThreads = 256;
  static constexpr i32 kWords = 4, kCluster = 1, kRows = 1, kShare = kVec8, kKind = 0;
};

// kCentred: rows have their mean taken off. Args: x, weight, y and eps, perhaps a bias, and perhaps a residual, to which x is added
// first, with its `sum`.
template <class Config, class Args, bool kCentred>
struct NormKernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords, kRows = Config::kRows;
  static constexpr Args kTypes = Config::types();
  using Team = RowTeam<kThreads, Config::kRowThreads, Config::kCluster>;
  using Row = RowShare<Team, Config::kShare, kWords>;
  template <DType kType>
  using Word = typename Row::template Word<kType>;

  // Some of these ops have a bias, and some a residual and a sum: tensors of rank 0 stand for those of the others.
  static constexpr bool kTakesBias = requires(Args a) { a.bias; }, kAdds = requires(Args a) { a.residual; };
  static constexpr Tensor kBias = [] {
    if constexpr (kTakesBias) return kTypes.bias;
    return Tensor{};
  }();
  static constexpr Tensor kResidual = [] {
    if constexpr (kAdds) return kTypes.residual;
    return Tensor{};
  }();
  static constexpr Tensor kSum = [] {
    if constexpr (kAdds) return kTypes.sum;
    return Tensor{};
  }();
  static constexpr bool kHasBias = kBias.rank > 0;

  // Weights of wide rows come when they are needed: with fewer registers, a multiprocessor has more rows at once.
  static constexpr bool kIsWide = kThreads >= 512 || Config::kCluster > 1;
  static constexpr i32 kThreadBytes =
      kWords * 8 * (Config::kShare == kElements || Row::kWaits ? 4 : size_of(kTypes.x.dtype));
  static constexpr bool kLate = Row::kWaits ? kIsWide && kThreadBytes >= 64
                                : kAdds     ? false
                                : kCentred  ? kIsWide && kThreadBytes >= 64
                                            : Config::kCluster > 1;
  static constexpr u32 kCtas = kLate && !kAdds && kThreads < 1024 ? 1024 / kThreads : 1;

  static void run(const Args& a, const TensorMap*, u8*) {
    const typename Team::template Rows<kRows> rows(a.x);
    const i32 columns = rows.elements[0];  // as many as the others have, if any
    Word<kTypes.x.dtype> x[kRows][kWords];
    Word<kResidual.dtype> residual[kAdds ? kRows : 1][kAdds ? kWords : 1];
    Word<kSum.dtype> sums[kAdds ? kRows : 1][kAdds ? kWords : 1];
    Word<kTypes.weight.dtype> weights[kWords];
    Word<kBias.dtype> biases[kWords];  // zeros where there is none
    const auto value = [&](i32 r, i32 n, i32 i) {
      if constexpr (kAdds)
        return sums[r][n].get(i);
      else
        return x[r][n].get(i);
    };
    const auto each = [&](auto&& use) {  // use(r, n, at) for the words of all rows
#pragma unroll
      for (i32 r = 0; r < kRows; ++r)
        Row::template each<kWords>(rows.elements[r], [&](i32 n, i32 at) { use(r, n, at); });
    };
    const auto finish = [&]<DType kType>(const Tensor& to) {
#pragma unroll
      for (i32 r = 0; r < kRows; ++r) Row::template finish<kType>(row_of(to, rows.row[r]), rows.elements[r]);
    };
    const auto load = [&](i32 r, i32 n, i32 at) {
      x[r][n].load(row_of(a.x, rows.row[r]), at, columns);
      if constexpr (kAdds) residual[r][n].load(row_of(a.residual, rows.row[r]), at, columns);
    };
    each(load);
    const auto load_weight = [&](i32 n, i32 at) { weights[n].load_kept(a.weight.data, at, columns); };
    const auto load_bias = [&](i32 n, i32 at) {
      if constexpr (kHasBias) biases[n].load_kept(a.bias.data, at, columns);
    };
    const auto load_both = [&](i32 n, i32 at) { load_weight(n, at), load_bias(n, at); };
    if constexpr (!kAdds && !kLate) Row::template each<kWords>(columns, load_both);
    Team::meet();
#pragma unroll
    for (auto& of_row : x) Row::settle(of_row);
    float means[kRows] = {}, scales[kRows] = {};  // at first the sums of squares
    each([&](i32 r, i32 n, i32 at) {
      if constexpr (kAdds) {
        sums[r][n] = Word<kSum.dtype>::of([&](i32 i) { return x[r][n].get(i) + residual[r][n].get(i); });
        sums[r][n].store(row_of(a.sum, rows.row[r]), at, columns);
      }
#pragma unroll
      for (i32 i = 0; i < 8; ++i)
        if constexpr (kCentred)
          means[r] += value(r, n, i);
        else
          scales[r] = fma(value(r, n, i), value(r, n, i), scales[r]);
    });
    if constexpr (kAdds) {
      finish.template operator()<kSum.dtype>(a.sum);
      if constexpr (!kLate) {
        Row::template each<kWords>(columns, load_weight);
        Row::template each<kWords>(columns, load_bias);
      }
    }
    if constexpr (kCentred) {
      Team::reduce(Sum(), means);
#pragma unroll
      for (float& mean : means) mean /= float(columns);
      each([&](i32 r, i32 n, i32) {
#pragma unroll
        for (i32 i = 0; i < 8; ++i) {
          const float off = x[r][n].has(i) ? value(r, n, i) - means[r] : 0.0f;
          scales[r] = fma(off, off, scales[r]);
        }
      });
    }
    Team::reduce(Sum(), scales, kCentred);
#pragma unroll
    for (float& scale : scales) scale = rsqrt(scale / float(columns) + a.eps);
    each([&](i32 r, i32 n, i32 at) {
      if constexpr (kLate) load_both(n, at);
      Word<kTypes.y.dtype>::of([&](i32 i) {
        const float own = value(r, n, i);
        if constexpr (kTakesBias)
          return fma((own - means[r]) * scales[r], weights[n].get(i), kHasBias ? biases[n].get(i) : 0.0f);
        else
          return own * scales[r] * weights[n].get(i);
      }).store(row_of(a.y, rows.row[r]), at, columns);
    });
    finish.template operator()<kTypes.y.dtype>(a.y);
  }
};

}  // namespace heddle::device
