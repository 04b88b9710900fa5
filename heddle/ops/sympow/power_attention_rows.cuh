// Parts of the bodies of power attention: rows of one head that lie `stride` apart, their gates, and the weights of pairs.
// Included in the namespaces of the bodies that use it.

// One head of one batch.
struct Head {
  i32 b, h;

  Head(const Tensor& q, const TileCoord& t) : b(t[0] / q.size[2]), h(t[0] % q.size[2]) {}

  // `count` rows of a tensor [B, T, H, N] from position `begin` on.
  template <class Block>
  auto lines(Block& block, const Tensor& tensor, i32 begin, i32 count) const {
    return Lines{block.row(tensor, b, begin, h), tensor.stride[1], count, tensor.size[3]};
  }
  template <class Block>
  auto row(Block& block, const Tensor& tensor, i32 t) const {
    return block.row(tensor, b, t, h);
  }
  // Elements of a tensor [B, T, H] from position `begin` on, as a view over positions.
  template <class Block>
  auto times(Block& block, const Tensor& tensor, i32 begin) const {
    return block.row(tensor, b, begin).from(h).every(tensor.stride[1]);
  }
  // to[i] = the sum of log gates of position begin + i.
  template <class Block, class View>
  void load_gates(Block& block, const Tensor& l, i32 begin, i32 count, View to) const {
    if (!l.exists()) return block.map(count, [&](auto i) { to.store(i, block.index(i) * 0.0f); });
    auto from = times(block, l, begin);
    block.map(count, [&](auto i) { to.store(i, from.load(i)); });
  }
};

// Rows of a head.
struct HeadRows {
  Head head;
  i32 begin, count;
};

// x^power for powers 2 and 4, and the derivative.
template <class V>
inline V raise(i32 power, V x) {
  const V square = x * x;
  return power == 2 ? square : square * square;
}
template <class V>
inline V slope(i32 power, V x) {
  return power == 2 ? x * 2.0f : x * x * x * 4.0f;
}
inline float past_factor(i32 power, float scale, float gate) {
  return exp(gate) * raise(power, scale);
}

// For each row from `begin` on: the gradient of element e of its weighted sum is dy[e] * inverse, that of its total `total`.
template <class Block, class Args, class View>
inline void row_gradients(Block& block, const Args& a, const Head& head, i32 begin, i32 count, View inverse,
                          View total) {
  auto given = head.times(block, a.dtotal, begin), all = head.times(block, a.total, begin);
  if (!a.normalise)
    return block.map(count, [&](auto i) {
      inverse.store(i, block.index(i) * 0.0f + 1.0f);
      total.store(i, given.load(i));
    });
  block.reduce_rows(total, count, a.y.size[3], Sum(), [&](i32 j, auto i) {
    return head.row(block, a.dy, begin + j).load(i) * head.row(block, a.y, begin + j).load(i);
  });
  block.sync();
  block.map(count, [&](auto i) {
    const auto one = quotient(block.index(i) * 0.0f + 1.0f, all.load(i) + a.eps);
    inverse.store(i, one);
    total.store(i, given.load(i) - total.load(i) * one);
  });
}
