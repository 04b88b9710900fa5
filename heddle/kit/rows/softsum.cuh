// The softmax of a row, online: its maximum and the sum of its weights (Milakov and Gimelshein, 2018).
#pragma once

#include "heddle/kit/arch/numbers.cuh"
#include "heddle/kit/value/value.cuh"

namespace heddle::device {

constexpr float kLog2E = 1.44269504088896341f;

// A running maximum, and the sum of 2^(log2 e * (value - maximum)).
struct Softsum {
  float top = -1e38f, sum = 0;  // lower values weigh nothing

  // Adds the values get(i), i < kCount, whose maximum `most` is.
  template <i32 kCount, class Get>
  void add(float most, Get&& get) {
    const float next = fmaxf(top, most);
    sum *= arch::exp2((top - next) * kLog2E);
    top = next;
#pragma unroll
    for (i32 i = 0; i < kCount; ++i) sum += arch::exp2((get(i) - next) * kLog2E);
  }
  // Joins those of a team.
  template <class Team>
  void join() {
    const float all = Team::reduce(Max(), top);
    sum = Team::reduce(Sum(), sum * arch::exp2((top - all) * kLog2E), 1);
    top = all;
  }
  // Joins those of the CTAs that have a row together.
  template <class Part>
  void join_cluster(const Part& part) {
    const float mine[2] = {top, sum};
    float others[2] = {-1e38f, 0};
    part.exchange(mine, others);
    top = Part::Team::over_warp(Max(), others[0]);
    sum = Part::Team::over_warp(Sum(), others[1] * arch::exp2((others[0] - top) * kLog2E));
  }
};

}  // namespace heddle::device
