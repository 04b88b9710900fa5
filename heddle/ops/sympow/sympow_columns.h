// The columns of a symmetric power phi(x), for which <phi(q), phi(k)> = <q, k>^power.
//
// x is cut into tiles of 8 elements. A block of phi is the tensor product of `power` tiles s0 >= s1 >= ..., times the
// square root of the number of different orders of these tiles. Blocks are in the order of the combinatorial number
// system: block (s0, s1, ...) is number C(s0 + p - 1, p) + C(s1 + p - 2, p - 1) + ... + s_(p-1), which does not depend on
// the number of tiles: a longer x only adds columns. In a block the element of the last tile varies fastest.
// 64 columns with equal elements of all tiles but the last two are a group: column 8 i + j of a group is
// weight * (product of its leading elements) * x[slow + i] * x[fast + j].
// Host and device include it: no standard headers.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

constexpr i32 kSympowTile = 8, kSympowGroup = 64;

// n (n + 1) ... (n + k - 1) / k!: how many non-increasing sequences of k numbers below n there are.
constexpr i64 sympow_sequences(i64 n, i32 k) {
  i64 count = 1;
  for (i32 i = 0; i < k; ++i) count = count * (n + i) / (i + 1);
  return count;
}

// The number of columns for `dim` elements, a multiple of 8.
constexpr i64 sympow_width(i32 power, i32 dim) {
  i64 width = sympow_sequences(dim / kSympowTile, power);
  for (i32 i = 0; i < power; ++i) width *= kSympowTile;
  return width;
}

struct SympowGroup {
  i32 first, second;  // leading elements of x; -1 for power 2
  i32 slow, fast;     // where the last two tiles begin in x
  i32 orders;         // different orders of the block's tiles; the weight is its square root

  float weight() const {
    constexpr float kRoots[] = {1.0f, 1.41421356f, 2.0f, 2.44948974f, 3.46410162f, 4.89897949f};
    return kRoots[orders <= 2 ? orders - 1 : orders == 4 ? 2 : orders == 6 ? 3 : orders == 12 ? 4 : 5];
  }
  // The product of weight and leading elements; `get(i)` is x[i].
  template <class Get>
  float factor(Get&& get) const {
    return first < 0 ? weight() : weight() * get(first) * get(second);
  }
};

// Takes from `rest` the largest first number of a non-increasing sequence of k numbers.
inline i32 sympow_take(i64& rest, i32 k) {
  i32 s = 0;
  while (sympow_sequences(s + 1, k) <= rest) ++s;
  rest -= sympow_sequences(s, k);
  return s;
}

// In how many orders four tiles s0 >= s1 >= s2 >= s3 can stand: 4! over the factorials of the lengths of equal runs.
inline i32 sympow_orders(i32 s0, i32 s1, i32 s2, i32 s3) {
  i32 orders = 24, run = 1;
  orders /= s1 == s0 ? ++run : (run = 1);
  orders /= s2 == s1 ? ++run : (run = 1);
  return orders / (s3 == s2 ? run + 1 : 1);
}

// Columns [64 number, 64 number + 64).
inline SympowGroup sympow_group(i32 power, i64 number) {
  if (power == 2) {
    const i32 s0 = sympow_take(number, 2), s1 = i32(number);
    return {-1, -1, kSympowTile * s0, kSympowTile * s1, s0 == s1 ? 1 : 2};
  }
  const i32 inside = i32(number % kSympowGroup);
  i64 block = number / kSympowGroup;
  const i32 s0 = sympow_take(block, 4), s1 = sympow_take(block, 3), s2 = sympow_take(block, 2),
            s3 = i32(block);
  return {kSympowTile * s0 + inside / kSympowTile, kSympowTile * s1 + inside % kSympowTile, kSympowTile * s2,
          kSympowTile * s3, sympow_orders(s0, s1, s2, s3)};
}

}  // namespace heddle
