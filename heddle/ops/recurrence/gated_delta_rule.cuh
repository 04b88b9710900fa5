// Tile body of gated_delta_rule: some columns of a head's state go through all positions. Included once per target, inside its
// namespace.
namespace gated_delta_rule {

struct Body {
  template <class Block>
  static void run(Block& block, const GatedDeltaRule& a, const TileCoord& t) {
    block.inputs();
    const i32 heads = a.q.size[2], b = t[0] / heads, h = t[0] % heads, part = t[1], count = t[2] - t[1];
    const i32 positions = a.q.size[1], dim = a.q.size[3];
    const float scale = a.scale == 0.0f ? 1.0f / sqrt(float(dim)) : a.scale;
    auto states = block.scratch(count * dim),
         found = block.scratch(count);  // a column of the state is a row here
    const auto column_of = [&](i32 i) { return states.from(i).every(dim); };
    block.map_rows(dim, count, [&](i32 i, auto j) {
      if (!a.s0.exists()) return column_of(i).store(j, block.index(j) * 0.0f);
      column_of(i).store(j, block.row(a.s0, b, h, i).from(part).load(j));
    });
    block.sync();
    for (i32 p = 0; p < positions; ++p) {
      if (p % kDeltaChunk == 0)
        block.map_rows(dim, count, [&](i32 i, auto j) {
          block.row(a.starts, b, h, p / kDeltaChunk * dim + i).from(part).store(j, column_of(i).load(j));
        });
      auto key = block.row(a.k, b, p, h), query = block.row(a.q, b, p, h);
      auto value = block.row(a.v, b, p, h).from(part), error = block.row(a.error, b, p, h).from(part);
      const float decay = exp(block.row(a.g, b, p).get(h)), beta = block.row(a.beta, b, p).get(h);
      block.reduce_rows(found, count, dim, Sum(),
                        [&](i32 n, auto i) { return states.from(n * dim).load(i) * decay * key.load(i); });
      block.sync();
      block.map(count, [&](auto n) {
        const auto miss = value.load(n) - found.load(n);
        error.store(n, miss);
        found.store(n, miss * beta);
      });
      block.sync();
      block.map_rows(count, dim, [&](i32 n, auto i) {
        auto row = states.from(n * dim);
        row.store(i, row.load(i) * decay + key.load(i) * found.get(n));
      });
      block.sync();
      block.reduce_rows(block.row(a.y, b, p, h).from(part), count, dim, Sum(), [&](i32 n, auto i) {
        return states.from(n * dim).load(i) * (query.load(i) * scale);
      });
    }
    block.sync();
    block.map_rows(dim, count, [&](i32 i, auto j) {
      block.row(a.last, b, h, i).from(part).store(j, column_of(i).load(j));
    });
  }
};

}  // namespace gated_delta_rule
