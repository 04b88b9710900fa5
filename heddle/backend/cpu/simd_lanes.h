// Indices of lane vectors, and what reductions do with them. Included once per SIMD target, inside its namespace,
// after simd_value.h.

// Indices at, at + 1, ... of a whole lane vector.
struct Lanes {
  i32 at;
  friend HWY_INLINE Lanes operator+(Lanes i, i32 n) { return {i.at + n}; }
};

// The first `count` lanes of one: the end of a row. Their values are those a whole vector would give.
struct FewLanes {
  i32 at, count;  // fewer than kLanes

  HWY_INLINE size_t bytes(i32 of_lane) const {
    if (count < 0 || count > kLanes)
      __builtin_unreachable();  // what copies through a vector's bytes need to know
    return size_t(count * of_lane);
  }
  friend HWY_INLINE FewLanes operator+(FewLanes i, i32 n) { return {i.at + n, i.count}; }
};

// Calls f for all i < n, a group of lanes at a time.
template <class F>
HWY_INLINE void over_groups(i32 n, F&& f) {
  i32 i = 0;
  for (; i + kLanes <= n; i += kLanes) f(Lanes{i});
  if (i < n) f(FewLanes{i, n - i});
}

HWY_INLINE Value combine(Sum, Value a, Value b) {
  return a + b;
}
HWY_INLINE Value combine(Max, Value a, Value b) {
  return max(a, b);
}
HWY_INLINE Value combine(Min, Value a, Value b) {
  return min(a, b);
}
HWY_INLINE float over_lanes(Sum, Value a) {
  return hn::GetLane(hn::SumOfLanes(d, a.v));
}
// Highway's own may lose NaN; those of HWY_EMU128 begin with the largest finite values, and so lose infinities.
template <class Extreme>
HWY_INLINE float over_lanes(Extreme extreme, Value a) {
  float lanes[kLanes];
  hn::StoreU(a.v, d, lanes);
  Value found(lanes[0]);
  for (const float lane : lanes) found = combine(extreme, found, Value(lane));
  return hn::GetLane(found.v);
}
constexpr float identity(Sum) {
  return 0;
}
constexpr float identity(Max) {
  return -__builtin_inff();
}
constexpr float identity(Min) {
  return __builtin_inff();
}
