// Tile body of head_norm. Included once per target, inside its namespace.
namespace head_norm {

struct Body {
  // `shifted(i, value)`: the value of element i with its bias.
  template <class Block, class In, class Weights, class Out, class Shifted>
  static void normalise_centred(Block& block, const HeadNorm& a, In x, Weights weight, Out y,
                                Shifted shifted) {
    const float mean = block.reduce(a.head_dim, Sum(), [&](auto i) { return x.load(i); }) / float(a.head_dim);
    const float squares = block.reduce(a.head_dim, Sum(), [&](auto i) {
      auto v = x.load(i) - mean;
      return v * v;
    });
    const float scale = rsqrt(squares / float(a.head_dim) + a.eps);
    block.map(a.head_dim,
              [&](auto i) { y.store(i, shifted(i, (x.load(i) - mean) * scale * weight.load(i))); });
  }

  template <class Block, class In, class Weights, class Out, class Shifted>
  static void normalise(Block& block, const HeadNorm& a, In x, Weights weight, Out y, Shifted shifted) {
    if (a.centred) return normalise_centred(block, a, x, weight, y, shifted);
    const float squares = block.reduce(a.head_dim, Sum(), [&](auto i) {
      auto v = x.load(i);
      return v * v;
    });
    const float scale = rsqrt(squares / float(a.head_dim) + a.eps);
    block.map(a.head_dim, [&](auto i) { y.store(i, shifted(i, x.load(i) * scale * weight.load(i))); });
  }

  template <class Block>
  static void run(Block& block, const HeadNorm& a, const TileCoord& t) {
    block.inputs();
    const i32 normed = a.heads * a.head_dim < t[3] ? a.heads * a.head_dim : t[3];
    const i32 rest = normed > t[2] ? normed : t[2];
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row), y = block.row(a.y, row);
      for (i32 at = t[2]; at < normed; at += a.head_dim) {
        auto weight = block.row(a.weight).from(at);
        if (a.bias.exists()) {
          auto bias = block.row(a.bias).from(at);
          normalise(block, a, x.from(at), weight, y.from(at),
                    [&](auto i, auto value) { return value + bias.load(i); });
        } else {
          normalise(block, a, x.from(at), weight, y.from(at), [](auto, auto value) { return value; });
        }
      }
      auto from = x.from(rest), to = y.from(rest);
      block.map(t[3] - rest, [&](auto i) { to.store(i, from.load(i)); });
    }
  }
};

}  // namespace head_norm
