// A function of the scores of attention, which flash_attention and its gradient are compiled with. It follows what a call has
// itself: scale, cap, slopes, bias. A name of the function stands in `KernelConfig` for whole kernels, and a tile body is a
// template over it.
// Host and device include it: no standard headers.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

// Which pair of a query and a key has the score. They count from the first of the tensor. Their numbers as floats are for
// arithmetic, exact below 2^24: a GPU converts an integer in the time of four additions.
struct ScorePlace {
  i32 batch, head, query, key;
  float query_number, key_number;
  float apart;  // query - key

  static ScorePlace of(i32 batch, i32 head, i32 query, i32 key) {
    return {batch, head, query, key, float(query), float(key), float(query - key)};
  }
};

// A score, and its derivative by the score that the function was given.
struct Scored {
  float score, slope;
};

// Changes no score. Every other function has the same members, and reads its own tensors from the arguments that it is made of.
struct SameScore {
  static constexpr bool kChanges = false;  // `of` gives other scores
  static constexpr bool kBends = false;    // `of` gives slopes other than 1
  static constexpr bool kMasks =
      false;  // `sees` may say no, and `sees_all` yes for blocks in which it does not

  template <class Args>
  explicit SameScore(const Args&) {}

  Scored of(float score, const ScorePlace&) const { return {score, 1}; }
  bool sees(const ScorePlace&) const { return true; }
  // Bit 2 n + c: whether the query sees the key 8 n + c after that of the place, which is even; or whether such a query sees the
  // key. They end with a cell of 128 queries and keys.
  u32 keys_seen(const ScorePlace&) const { return ~0u; }
  u32 queries_seen(const ScorePlace&) const { return ~0u; }
  // For all pairs of a block of a call's lists. The place is that of one of them.
  bool sees_all(const ScorePlace&) const { return true; }
};

// The score of a pair, which has no weight where the query does not see the key.
template <class Score>
inline Scored scored(const Score& function, float score, const ScorePlace& place) {
  if constexpr (Score::kMasks)
    if (!function.sees(place)) return {__builtin_bit_cast(float, 0xff800000u), 0};
  return function.of(score, place);
}

}  // namespace heddle
