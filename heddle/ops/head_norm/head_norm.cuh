// Tile body of head_norm. Included once per target, inside its namespace.
namespace head_norm {

struct Body {
  template <class Block, class In, class Weights, class Out>
  static void normalise_centred(Block& block, const HeadNorm& a, In x, Weights weight, Out y) {
    const float mean = block.reduce(a.head_dim, Sum(), [&](auto i) { return x.load(i); }) / float(a.head_dim);
    const float squares = block.reduce(a.head_dim, Sum(), [&](auto i) {
      auto v = x.load(i) - mean;
      return v * v;
    });
    const float scale = rsqrt(squares / float(a.head_dim) + a.eps);
    block.map(a.head_dim, [&](auto i) { y.store(i, (x.load(i) - mean) * scale * weight.load(i)); });
  }

  template <class Block, class In, class Weights, class Out>
  static void normalise(Block& block, const HeadNorm& a, In x, Weights weight, Out y) {
    if (a.centred) return normalise_centred(block, a, x, weight, y);
    const float squares = block.reduce(a.head_dim, Sum(), [&](auto i) {
      auto v = x.load(i);
      return v * v;
    });
    const float scale = rsqrt(squares / float(a.head_dim) + a.eps);
    block.map(a.head_dim, [&](auto i) { y.store(i, x.load(i) * scale * weight.load(i)); });
  }

  template <class Block>
  static void run(Block& block, const HeadNorm& a, const TileCoord& t) {
    block.inputs();
    const i32 normed = a.heads * a.head_dim < t[3] ? a.heads * a.head_dim : t[3];
    const i32 rest = normed > t[2] ? normed : t[2];
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row), y = block.row(a.y, row);
      for (i32 at = t[2]; at < normed; at += a.head_dim)
        normalise(block, a, x.from(at), block.row(a.weight).from(at), y.from(at));
      auto from = x.from(rest), to = y.from(rest);
      block.map(t[3] - rest, [&](auto i) { to.store(i, from.load(i)); });
    }
  }
};

}  // namespace head_norm
