// The body of Norm in test_own_op.py: a whole struct, with a function of its own.
struct Body {
  template <class Block>
  static float scale_of(Block& block, const Args& a, i32 row) {
    const auto x = block.row(a.x, row);
    if (a.kind == kind_softmax)
      return 1 / block.reduce(a.x.last(), Sum(), [&](auto i) { return exp(x.load(i)); });
    return 1 / block.reduce(a.x.last(), Max(), [&](auto i) { return abs(x.load(i)); });
  }

  template <class Block>
  static void run(Block& block, const Args& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      const auto x = block.row(a.x, row), y = block.row(a.y, row);
      const float scale = scale_of(block, a, row);
      const bool raise = a.kind == kind_softmax;
      block.map(a.x.last(), [&](auto i) { y.store(i, (raise ? exp(x.load(i)) : x.load(i)) * scale); });
    }
  }
};
