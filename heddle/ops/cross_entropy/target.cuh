// The target of a row, and logits under a cap. Included inside the namespace of each body of the family.

// The target of a row: a column; or none, where it is ignored (gain 0) or no column at all (gain NaN). `gain` multiplies
// what the row contributes.
struct Target {
  i32 column;
  float gain;
};

// 64-bit targets are read by halves, the low one first.
template <class View>
inline Target target_of(View targets, bool is_wide, i32 row, i32 columns, i32 ignored) {
  const i32 low = targets.get_int(is_wide ? 2 * row : row);
  const i32 high = is_wide ? targets.get_int(2 * row + 1) : low >> 31;
  if (high != low >> 31) return {-1, kNaN};
  if (low == ignored) return {-1, 0.0f};
  return low >= 0 && low < columns ? Target{low, 1.0f} : Target{-1, kNaN};
}

// The loss of a row, from its log-sum-exp, the target's capped logit and, for smoothing, the sum of all capped logits. That of an ignored
// row is 0 even where its logits are not finite.
template <class Args>
inline float loss_of(const Args& a, i32 columns, const Target& target, float lse, float own, float sum) {
  const float s = a.label_smoothing;
  const float loss = lse - (1 - s) * own - s * (sum / float(columns)) + a.z_loss * lse * lse;
  return target.gain == 0.0f ? 0.0f : loss * target.gain;
}

// The numbers of a row's gradient: dz = of_p * p - less, and - own at the target's column.
struct Slopes {
  i32 column;
  float lse, of_p, less, own;
};

// element(tensor): the row's, of one element for each row.
template <class Args, class Element>
inline Slopes slopes_of(const Args& a, i32 columns, const Target& target, Element&& element) {
  const float lse = element(a.lse), s = a.label_smoothing;
  const float given = target.gain == 0.0f ? 0.0f : element(a.dloss) * target.gain;
  float of_p = given * (1 + 2 * a.z_loss * lse);
  if (a.dlse.exists()) of_p += element(a.dlse);
  return {target.column, lse, of_p, s == 0.0f ? 0.0f : given * s / float(columns), given * (1 - s)};
}

template <class V>
inline V capped(V x, float cap) {
  return cap > 0.0f ? tanh(x * V(1.0f / cap)) * V(cap) : x;
}

// Its slope, from the capped value.
template <class V>
inline V slope_of_cap(V z, float cap) {
  const V t = z * V(cap > 0.0f ? 1.0f / cap : 0.0f);
  return V(1.0f) - t * t;
}
