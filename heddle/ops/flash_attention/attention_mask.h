// Which keys a query of the flash_attention family sees. Query i of a sequence of S queries and T keys stands at position
// p = i + T - S + q_offset: without an offset the last query stands at the last key. It sees the keys from p - window_left to
// p + window_right; `causal` is window_right = 0. Host and device include it: no standard headers.
#pragma once

#include "heddle/ir/tensor.h"

namespace heddle {

// Queries and keys that belong together.
struct AttentionSequence {
  i32 query_begin, query_end, key_begin, key_end;

  i32 queries() const { return query_end - query_begin; }
  i32 keys() const { return key_end - key_begin; }
};

struct AttentionRange {
  i32 begin, end;  // empty: end <= begin
};

// The mask of a sequence; queries and keys count from its first ones.
struct AttentionMask {
  i32 queries, keys;
  i64 shift;        // position of query 0
  i64 left, right;  // keys before and after its own that a query sees

  i64 position(i32 query) const { return query + shift; }
  AttentionRange keys_of(i32 query) const {
    const i64 p = position(query);
    return clamp(p - left, p + right + 1, keys);
  }
  AttentionRange queries_of(i32 key) const {
    const i64 at = key - shift;
    return clamp(at - right, at + left + 1, queries);
  }

 private:
  static AttentionRange clamp(i64 begin, i64 end, i32 most) {
    return {i32(begin < 0 ? 0 : begin > most ? most : begin), i32(end < 0 ? 0 : end > most ? most : end)};
  }
};

// `a`: the arguments of an op of the family.
template <class Args>
AttentionMask attention_mask(const Args& a, const AttentionSequence& s) {
  constexpr i64 kAll = i64{1} << 40;
  return {s.queries(), s.keys(), i64(s.keys()) - s.queries() + a.q_offset,
          a.window_left < 0 ? kAll : a.window_left,
          a.causal             ? 0
          : a.window_right < 0 ? kAll
                               : a.window_right};
}

}  // namespace heddle
