// power_attention_past_backward as a whole kernel: a few neighbouring lanes have a row.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/kit/rows/vec8.cuh"
#include "heddle/ops/sympow/power_attention_past_backward.h"
#include "heddle/ops/sympow/row_lanes_kernel.sm80.cuh"

namespace heddle::device::power_attention_past_backward {

using namespace row_lanes;

struct KernelConfig {
  static constexpr i32 kKernel = 1;
  static constexpr i32 kLanes = 8;
};

template <class Config>
struct Kernel {
  static constexpr DType kY = Config::types().y.dtype, kDy = Config::types().dy.dtype,
                         kPast = Config::types().dpast.dtype;
  static constexpr u32 kThreads = 256;
  using Row = RowLanes<Config::kLanes>;

  static void run(const PowerAttentionPastBackward& a, const TensorMap*, u8*) {
    const i64 all = i64(a.y.size[0]) * a.y.size[1] * a.y.size[2];
    const i64 line = i64(blockIdx.x) * (kThreads / Config::kLanes) + threadIdx.x / Config::kLanes;
    const Row row = row_of_line<Config::kLanes>(a.y, line < all ? line : all - 1);
    const i32 words = a.y.size[3] / 8, lane = Row::lane();
    const float square = a.scale * a.scale, raised = a.power == 2 ? square : square * square;
    const float factor = a.l.exists() ? exp(row.at(a.l)) * raised : raised;
    Vec8<kDy> dy;
    if (lane < words) dy.load(row.template row<kDy>(a.dy), lane);
    float inverse = 1, of_total = row.at(a.dtotal);
    if (a.normalise) {
      float sum = 0;
      if (lane < words) {
        Vec8<kY> y;
        y.load(row.template row<kY>(a.y), lane);
        sum = dot(dy, y);
      }
      inverse = quotient(1.0f, row.at(a.total) + a.eps);
      of_total -= Row::sum(sum) * inverse;
    }
    if (line >= all) return;
    if (lane < words)
      Vec8<kPast>::of([&](i32 i) {
        return dy.get(i) * (inverse * factor);
      }).store(row.template row<kPast>(a.dpast), lane);
    // Column E belongs to the total; the rest counts nothing.
    if (lane == 0 && a.dpast.size[3] > a.y.size[3])
      alone<kPast>(a.normalise ? of_total * factor : 0.0f).store(row.template row<kPast>(a.dpast), words);
  }
};

}  // namespace heddle::device::power_attention_past_backward
