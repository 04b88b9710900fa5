// Tile body of short_convolution: some columns of one sequence's rows. Included once per target, inside its namespace.
namespace short_convolution {

struct Body {
  template <class Block>
  static void run(Block& block, const ShortConvolution& a, const TileCoord& t) {
    block.inputs();
    const StepHost& host = block.host(a.step);
    const i32 s = t[0], begin = t[1], columns = t[2] - t[1];
    if (s >= host.sequences) return block.dead();
    const i32 first = host.sequence(s)->row_begin, rows = host.sequence(s)->row_count;
    const i32 slot = host.sequence(s)->slot, start = block.device(a.state).position()[first];
    const i32 width = a.weight.size[0];
    const auto remembered = [&](i32 position) {
      return block.row(a.memory, slot, position % width).from(begin);
    };
    block.map_rows(rows, columns, [&](i32 m, auto i) {
      using Value = decltype(block.row(a.x, first).load(i));
      Value sum(0.0f);
      if (a.bias.exists()) sum = block.row(a.bias).from(begin).load(i);
      for (i32 w = 0; w < width; ++w) {
        const i32 row = m + w + 1 - width;  // counted in this sequence; earlier steps had those below 0
        if (start + row < 0) continue;
        const Value factor = block.row(a.weight, w).from(begin).load(i);
        const auto x = row < 0 ? remembered(start + row) : block.row(a.x, first + row).from(begin);
        sum = fma(factor, x.load(i), sum);
      }
      block.row(a.y, first + m).from(begin).store(i, a.activation == 1 ? silu(sum) : sum);
    });
    block.sync();
    const i32 kept = rows < width ? rows : width;
    block.map_rows(kept, columns, [&](i32 m, auto i) {
      const i32 row = rows - kept + m;
      remembered(start + row).store(i, block.row(a.x, first + row).from(begin).load(i));
    });
  }
};

}  // namespace short_convolution
