// Reductions of the family. Included inside the namespace of each body.

// NaN where x is none of the numbers, else 0. Maxima add it up, because max() may pass it by.
template <class V>
inline V nan_of(V x) {
  return where_less(x, V(kInfinity), V(0.0f), where_less(V(0.0f), x, V(0.0f), x));
}

// The sum, maximum or mean of the first `count` elements of a view.
template <class Block, class View>
inline float reduce_view(Block& block, i32 kind, i32 count, View x) {
  if (kind == kReduceMax) {
    const float most = block.reduce(count, Max(), [&](auto i) { return x.load(i); });
    return most + block.reduce(count, Sum(), [&](auto i) { return nan_of(x.load(i)); });
  }
  const float sum = block.reduce(count, Sum(), [&](auto i) { return x.load(i); });
  return kind == kReduceMean ? sum / float(count) : sum;
}
