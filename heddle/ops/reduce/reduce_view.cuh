// Reductions of the family. Included inside the namespace of each body.

// The sum, maximum or mean of the first `count` elements of a view.
template <class Block, class View>
inline float reduce_view(Block& block, i32 kind, i32 count, View x) {
  if (kind == kReduceMax) return block.reduce(count, Max(), [&](auto i) { return x.load(i); });
  const float sum = block.reduce(count, Sum(), [&](auto i) { return x.load(i); });
  return kind == kReduceMean ? sum / float(count) : sum;
}
