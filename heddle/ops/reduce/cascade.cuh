// Sums whose rounding errors grow slowly: sums of a few terms are added up on four levels, as sums of sums. The order follows from the
// number of terms. Included inside the namespace of each body that adds this way.

template <class V>
struct Cascade {
  // Levels have as many sums each, where `count` are added.
  explicit Cascade(i32 count) {
    while (i64(step) * step * step * step < count) step *= 2;
  }
  void add(V sum) {
    first = first + sum;
    if (++added % step != 0) return;
    second = second + first, first = V(0.0f);
    if (added % (step * step) != 0) return;
    third = third + second, second = V(0.0f);
    if (added % (step * step * step) != 0) return;
    last = last + third, third = V(0.0f);
  }
  V all() const { return ((first + second) + third) + last; }

  V first{0.0f}, second{0.0f}, third{0.0f}, last{0.0f};
  i32 added = 0, step = 4;
};

// The sum of term(j), j < count, which has one at least. Eight terms are joined by halves.
template <class Term>
inline auto cascade_sum(i32 count, Term&& term) {
  using V = decltype(term(0) + term(0));
  const auto pair = [&](i32 j) { return term(j) + term(j + 1); };
  Cascade<V> sums(count / 8);
  i32 j = 0;
  for (; j + 8 <= count; j += 8) sums.add((pair(j) + pair(j + 2)) + (pair(j + 4) + pair(j + 6)));
  V rest(0.0f);
  for (; j < count; ++j) rest = rest + term(j);
  return sums.all() + rest;
}
