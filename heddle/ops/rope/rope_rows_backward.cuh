// Tile body of rope_rows_backward. Included once per target, inside its namespace. Tiles have whole heads.
namespace rope_rows_backward {

struct Body {
  template <class Block, class Table, class View>
  static void turn_back(Block& block, const RopeRowsBackward& a, Table table, View dy, View dx) {
    const i32 pairs = a.rotary_dim / 2;
    block.map(pairs, [&](auto i) {
      auto angle = table.load_pair(i);
      if (a.interleaved) {
        auto pair = dy.load_pair(i);
        dx.store_pair(i, pair.first * angle.first + pair.second * angle.second,
                      pair.second * angle.first - pair.first * angle.second);
      } else {
        auto first = dy.load(i), second = dy.from(pairs).load(i);
        dx.store(i, first * angle.first + second * angle.second);
        dx.from(pairs).store(i, second * angle.first - first * angle.second);
      }
    });
  }

  template <class Block>
  static void run(Block& block, const RopeRowsBackward& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row)
      for (i32 at = t[2]; at < t[3]; at += a.head_dim) {
        auto dy = block.row(a.dy, row).from(at), dx = block.row(a.dx, row).from(at);
        const bool turns = at < a.heads * a.head_dim;
        if (turns) turn_back(block, a, block.row(a.table, row), dy, dx);
        const i32 skip = turns ? a.rotary_dim : 0,
                  width = (t[3] - at < a.head_dim ? t[3] - at : a.head_dim) - skip;
        auto from = dy.from(skip), to = dx.from(skip);
        block.map(width, [&](auto i) { to.store(i, from.load(i)); });
      }
  }
};

}  // namespace rope_rows_backward
