// Tile body of rope. Included once per target, inside its namespace.
namespace rope {

struct Body {
  template <class View, class Index, class Pair>
  static void turn(View in, View out, Index i, Pair angle) {
    auto v = in.load_pair(i);
    out.store_pair(i, v.first * angle.first - v.second * angle.second,
                   v.second * angle.first + v.first * angle.second);
  }

  template <class Block, class Table, class View>
  static void turn_halves(Block& block, i32 pairs, Table table, View in, View out) {
    block.map(pairs, [&](auto i) {
      auto angle = table.load_pair(i);
      auto first = in.load(i), second = in.from(pairs).load(i);
      out.store(i, first * angle.first - second * angle.second);
      out.from(pairs).store(i, second * angle.first + first * angle.second);
    });
  }

  // Calls f(at, inside, pairs) for the interleaved partners that turn in columns [begin, end): `pairs` of them from column
  // `at` on, which is element `inside` of its head.
  template <class F>
  static void each_head(const Rope& a, i32 begin, i32 end, F&& f) {
    const i32 stop = a.heads * a.head_dim < end ? a.heads * a.head_dim : end;
    for (i32 at = begin; at < stop;) {
      const i32 inside = at % a.head_dim, head_end = at - inside + a.head_dim;
      const i32 next = head_end < stop ? head_end : stop, turned = at - inside + a.rotary_dim;
      const i32 pairs = ((turned < next ? turned : next) - at) / 2;
      if (pairs > 0) f(at, inside, pairs);
      at = next;
    }
  }

  template <class Block, class Fragment>
  static void epilogue(Block& block, const Rope& a, Fragment& fragment) {
    each_head(a, fragment.n0, fragment.n0 + fragment.cols, [&](i32 at, i32 inside, i32 pairs) {
      block.map_rows(
          fragment.rows, pairs,
          [&](i32 m, auto i) { return block.row(a.table, fragment.m0 + m).from(inside).load_pair(i); },
          [&](i32 m, auto i, auto angle) {
            auto row = fragment.row(m).from(at - fragment.n0);
            turn(row, row, i, angle);
          });
    });
    block.sync();
  }

  static bool takes_columns(const Rope& a) { return a.head_dim % 2 == 0; }
  // Where columns turn, else the row's first angle, which is not used.
  static i32 angle_of(const Rope& a, i32 column) {
    const i32 inside = column % a.head_dim;
    return column < a.heads * a.head_dim && inside < a.rotary_dim ? inside : 0;
  }
  template <class Block, class Columns>
  static auto ask(Block& block, const Rope& a, i32 row, const Columns& columns) {
    return block.row(a.table, row).from(angle_of(a, columns.at)).ask(columns.count > 0 ? 2 : 0);
  }
  template <class Block, class Columns, class Asked>
  static void columns(Block&, const Rope& a, i32, Columns& columns, const Asked& angle) {
    const i32 inside = columns.at % a.head_dim;
    if (columns.at >= a.heads * a.head_dim || inside >= a.rotary_dim) return;
    const float x = columns.value[0], y = columns.value[1];
    columns.value[0] = x * angle.get(0) - y * angle.get(1);
    columns.value[1] = y * angle.get(0) + x * angle.get(1);
  }

  template <class Block>
  static void run(Block& block, const Rope& a, const TileCoord& t) {
    block.inputs();
    for (i32 m = t[0]; m < t[1]; ++m) {
      auto in = block.row(a.x, m).from(t[2]), out = block.row(a.y, m).from(t[2]);
      // What does not turn; its elements are disjoint from those that do.
      for (i32 at = t[2]; at < t[3]; at += a.head_dim) {
        const i32 skip = at < a.heads * a.head_dim ? a.rotary_dim : 0;
        const i32 width = (t[3] - at < a.head_dim ? t[3] - at : a.head_dim) - skip;
        auto from = in.from(at - t[2] + skip), to = out.from(at - t[2] + skip);
        block.map(width, [&](auto i) { to.store(i, from.load(i)); });
        if (skip > 0 && !a.interleaved)
          turn_halves(block, a.rotary_dim / 2, block.row(a.table, m), in.from(at - t[2]),
                      out.from(at - t[2]));
      }
      if (!a.interleaved) continue;
      each_head(a, t[2], t[3], [&](i32 at, i32 inside, i32 pairs) {
        auto table = block.row(a.table, m).from(inside), from = in.from(at - t[2]), to = out.from(at - t[2]);
        block.map(pairs, [&](auto i) { turn(from, to, i, table.load_pair(i)); });
      });
    }
  }
};

}  // namespace rope
