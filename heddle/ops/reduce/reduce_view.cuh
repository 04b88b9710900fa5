// Reductions of the family. Included inside the namespace of each body.
#include "heddle/ops/reduce/cascade.cuh"

constexpr i32 kPiece = 2048;  // elements that a block adds up at a time

template <class Block, class View>
inline float sum_view(Block& block, i32 count, View x) {
  Cascade<float> sums((count - 1) / kPiece + 1);
  for (i32 begin = 0; begin < count; begin += kPiece)
    sums.add(block.reduce(count - begin < kPiece ? count - begin : kPiece, Sum(),
                          [&](auto i) { return x.load(i + begin); }));
  return sums.all();
}

// The sum, maximum or mean of the first `count` elements of a view.
template <class Block, class View>
inline float reduce_view(Block& block, i32 kind, i32 count, View x) {
  if (kind == kReduceMax) return block.reduce(count, Max(), [&](auto i) { return x.load(i); });
  const float sum = sum_view(block, count, x);
  return kind == kReduceMean ? sum / float(count) : sum;
}
