// Tile body of rope. Included once per target, inside its namespace.
namespace rope_rows {

struct Body : Epilogue<Body> {
  static constexpr i32 kTakes = 2, kGives = 2;  // partners, which lie side by side in a chain

  static const Tensor& input(const RopeRows& a) { return a.x; }
  static const Tensor& output(const RopeRows& a) { return a.y; }

  template <class Block>
  static auto operand(Block& block, const RopeRows& a, i32 row) {
    return block.row(a.table, row);
  }
  // angle: its cosine and sine.
  template <class Pair>
  static Pair value(const RopeRows&, Pair x, Pair angle) {
    return {x.first * angle.first - x.second * angle.second, x.second * angle.first + x.first * angle.second};
  }

  // Head after head; `inside` is also where `column` lies in its head.
  template <class F>
  static void each_span(const RopeRows& a, i32 begin, i32 end, F&& f) {
    const i32 stop = a.heads * a.head_dim < end ? a.heads * a.head_dim : end;
    for (i32 at = begin; at < stop;) {
      const i32 inside = at % a.head_dim, head_end = at - inside + a.head_dim;
      const i32 next = head_end < stop ? head_end : stop, turned = at - inside + a.rotary_dim;
      const i32 pairs = ((turned < next ? turned : next) - at) / 2;
      if (pairs > 0) f(at, inside, pairs);
      at = next;
    }
  }

  static bool changes(const RopeRows& a, i32 column) {
    return column < a.heads * a.head_dim && column % a.head_dim < a.rotary_dim;
  }
  static i32 operand_column(const RopeRows& a, i32 column) {
    return changes(a, column) ? column % a.head_dim : 0;
  }

  template <class Block, class Table, class View>
  static void turn_halves(Block& block, const RopeRows& a, Table table, View in, View out) {
    const i32 pairs = a.rotary_dim / 2;
    block.map(pairs, [&](auto i) {
      const auto angle = table.load_pair(i);
      auto x = angle;
      x.first = in.load(i), x.second = in.from(pairs).load(i);
      const auto y = value(a, x, angle);
      out.store(i, y.first);
      out.from(pairs).store(i, y.second);
    });
  }

  template <class Block>
  static void run(Block& block, const RopeRows& a, const TileCoord& t) {
    block.inputs();
    for (i32 m = t[0]; m < t[1]; ++m) {
      auto in = block.row(a.x, m).from(t[2]), out = block.row(a.y, m).from(t[2]);
      // Copies the columns that do not turn. They are disjoint from those that do.
      for (i32 at = t[2]; at < t[3]; at += a.head_dim) {
        const i32 skip = at < a.heads * a.head_dim ? a.rotary_dim : 0;
        const i32 width = (t[3] - at < a.head_dim ? t[3] - at : a.head_dim) - skip;
        auto from = in.from(at - t[2] + skip), to = out.from(at - t[2] + skip);
        block.map(width, [&](auto i) { to.store(i, from.load(i)); });
        if (skip > 0 && !a.interleaved)
          turn_halves(block, a, block.row(a.table, m), in.from(at - t[2]), out.from(at - t[2]));
      }
    }
    if (a.interleaved) Epilogue::run(block, a, t);
  }
};

}  // namespace rope_rows
