// Tile body of rope. Included once per target, inside its namespace.
namespace rope {

struct Body {
  // Turns the pairs {in.load_pair(i)} by the table's, `pairs` of them, side by side.
  template <class Block, class Table, class View>
  static void turn_pairs(Block& block, i32 pairs, Table table, View in, View out) {
    block.map(pairs, [&](auto i) {
      auto angle = table.load_pair(i), v = in.load_pair(i);
      out.store_pair(i, v.first * angle.first - v.second * angle.second,
                     v.second * angle.first + v.first * angle.second);
    });
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

  // Interleaved partners in the columns [begin, end) of a row: `row` begins at column `begin`.
  template <class Block, class View>
  static void turn_columns(Block& block, const Rope& a, i32 m, i32 begin, i32 end, View in, View out) {
    const i32 stop = a.heads * a.head_dim < end ? a.heads * a.head_dim : end;
    for (i32 at = begin; at < stop;) {
      const i32 inside = at % a.head_dim, head_end = at - inside + a.head_dim;
      const i32 next = head_end < stop ? head_end : stop, turned = at - inside + a.rotary_dim;
      const i32 pairs = ((turned < next ? turned : next) - at) / 2;
      if (pairs > 0)
        turn_pairs(block, pairs, block.row(a.table, m).from(inside), in.from(at - begin),
                   out.from(at - begin));
      at = next;
    }
  }

  template <class Block, class Fragment>
  static void epilogue(Block& block, const Rope& a, Fragment& fragment) {
    for (i32 m = 0; m < fragment.rows; ++m) {
      auto row = fragment.row(m);
      turn_columns(block, a, fragment.m0 + m, fragment.n0, fragment.n0 + fragment.cols, row, row);
    }
    block.sync();
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
      if (a.interleaved) turn_columns(block, a, m, t[2], t[3], in, out);
    }
  }
};

}  // namespace rope
