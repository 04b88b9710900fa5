// The heads of a tile of rows, of which the first `rotary_dim` elements turn. Included inside the namespace of each op that turns
// rows. Its body has value(a, x, angle): the pair x, turned by an angle with a cosine and a sine.

// Turns elements i and i + R / 2 of a head.
template <class Body, class Block, class Args, class View>
inline void turn_halves(Block& block, const Args& a, View table, View in, View out) {
  const i32 pairs = a.rotary_dim / 2;
  block.map(pairs, [&](auto i) {
    const auto angle = table.load_pair(i);
    auto x = angle;
    x.first = in.load(i), x.second = in.from(pairs).load(i);
    const auto y = Body::value(a, x, angle);
    out.store(i, y.first);
    out.from(pairs).store(i, y.second);
  });
}

// Copies the columns that do not turn, and calls turn(table, in, out) for each head that does. They are disjoint.
template <class Block, class Args, class F>
inline void each_head(Block& block, const Args& a, const Tensor& x, const Tensor& y, const TileCoord& t,
                      F&& turn) {
  for (i32 m = t[0]; m < t[1]; ++m)
    for (i32 at = t[2]; at < t[3]; at += a.head_dim) {
      const auto in = block.row(x, m).from(at), out = block.row(y, m).from(at);
      const bool turns = at < a.heads * a.head_dim;
      const i32 skip = turns ? a.rotary_dim : 0;
      const i32 width = (t[3] - at < a.head_dim ? t[3] - at : a.head_dim) - skip;
      const auto from = in.from(skip);
      auto to = out.from(skip);
      block.map(width, [&](auto i) { to.store(i, from.load(i)); });
      if (turns) turn(block.row(a.table, m), in, out);
    }
}
