// Tile body of gated_delta_rule_backward: a head, chunk by chunk from the last. Included once per target, inside its namespace.
namespace gated_delta_rule_backward {

struct Body {
  // A chunk's numbers on chip: sums of logarithms, betas, and products of pairs of rows (s, t), at s * rows + t. In those of
  // changes is what decays multiply them by, which is finite for s >= t.
  template <class View>
  struct Chip {
    View sums, betas, query_key, key_key, dy_change, z_change;
    View z, dq, dk, numbers;

    template <class Block>
    Chip(Block& block, i32 dim, i32 columns)
        : sums(block.scratch(kDeltaChunk)),
          betas(block.scratch(kDeltaChunk)),
          query_key(block.scratch(kDeltaChunk * kDeltaChunk)),
          key_key(block.scratch(kDeltaChunk * kDeltaChunk)),
          dy_change(block.scratch(kDeltaChunk * kDeltaChunk)),
          z_change(block.scratch(kDeltaChunk * kDeltaChunk)),
          z(block.scratch(kDeltaChunk * columns)),
          dq(block.scratch(kDeltaChunk * dim)),
          dk(block.scratch(kDeltaChunk * dim)),
          numbers(block.scratch(2 * kDeltaChunk)) {}
  };
  // The rows of a chunk of one head.
  struct Rows {
    i32 b, h, begin, count, chunk;

    template <class Block>
    auto of(Block& block, const Tensor& tensor, i32 t) const {
      return block.row(tensor, b, begin + t, h);
    }
  };

  template <class Block>
  static void run(Block& block, const GatedDeltaRuleBackward& a, const TileCoord& t) {
    block.inputs();
    const i32 heads = a.q.size[2], b = t[0] / heads, h = t[0] % heads, positions = a.q.size[1];
    const i32 dim = a.q.size[3], columns = a.v.size[3], chunks = delta_chunks(positions);
    const Chip<decltype(block.scratch(1))> chip(block, dim, columns);
    block.map_rows(dim, columns, [&](i32 i, auto j) {
      auto to = block.row(a.ds0, b, h, i);
      if (!a.dlast.exists()) return to.store(j, block.index(j) * 0.0f);
      to.store(j, block.row(a.dlast, b, h, i).load(j));
    });
    block.sync();
    for (i32 chunk = chunks - 1; chunk >= 0; --chunk) {
      const i32 begin = chunk * kDeltaChunk, rest = positions - begin;
      const Rows rows{b, h, begin, rest < kDeltaChunk ? rest : kDeltaChunk, chunk};
      load_numbers(block, a, rows, chip);
      substitute(block, a, rows, chip);
      multiply_changes(block, a, rows, chip);
      gradients_of_vectors(block, a, rows, chip);
      gradients_of_numbers(block, a, rows, chip);
      take_state(block, a, rows, chip);
    }
  }

  // The value, or NaN where it is infinite: fp64 has NaN in some of those places, as sums there have other parts.
  template <class Value>
  static Value told(Value value) {
    return value + (value - value);
  }
  // The product of decays after row t, up to row s.
  template <class Chip>
  static float decay(const Chip& chip, i32 s, i32 t) {
    return exp(chip.sums.get(s) - chip.sums.get(t));
  }
  static float scale_of(const GatedDeltaRuleBackward& a) {
    return a.scale == 0.0f ? 1.0f / sqrt(float(a.q.size[3])) : a.scale;
  }
  // Row i of the state before the chunk, and before the next one.
  template <class Block>
  static auto state_before(Block& block, const GatedDeltaRuleBackward& a, const Rows& rows, i32 i) {
    return block.row(a.starts, rows.b, rows.h, rows.chunk * a.q.size[3] + i);
  }
  template <class Block>
  static auto state_after(Block& block, const GatedDeltaRuleBackward& a, const Rows& rows, i32 i) {
    return rows.begin + rows.count == a.q.size[1]
               ? block.row(a.last, rows.b, rows.h, i)
               : block.row(a.starts, rows.b, rows.h, (rows.chunk + 1) * a.q.size[3] + i);
  }

  template <class Block, class Chip>
  static void load_numbers(Block& block, const GatedDeltaRuleBackward& a, const Rows& rows,
                           const Chip& chip) {
    const i32 n = rows.count, dim = a.q.size[3];
    auto sums = chip.sums, betas = chip.betas;
    float sum = 0;
    for (i32 t = 0; t < n; ++t) {
      sum += block.row(a.g, rows.b, rows.begin + t).get(rows.h);
      sums.set(t, sum);
      betas.set(t, block.row(a.beta, rows.b, rows.begin + t).get(rows.h));
    }
    block.reduce_rows(chip.query_key, n * n, dim, Sum(), [&](i32 pair, auto i) {
      return rows.of(block, a.q, pair / n).load(i) * rows.of(block, a.k, pair % n).load(i);
    });
    block.reduce_rows(chip.key_key, n * n, dim, Sum(), [&](i32 pair, auto i) {
      return rows.of(block, a.k, pair / n).load(i) * rows.of(block, a.k, pair % n).load(i);
    });
    block.sync();
  }

  // z of all rows, and with it dbeta and dv.
  template <class Block, class Chip>
  static void substitute(Block& block, const GatedDeltaRuleBackward& a, const Rows& rows, const Chip& chip) {
    const i32 n = rows.count, dim = a.q.size[3], columns = a.v.size[3];
    const float scale = scale_of(a);
    for (i32 t = n - 1; t >= 0; --t) {
      auto key = rows.of(block, a.k, t);
      auto z = chip.z.from(t * columns);
      const float after = decay(chip, n - 1, t), beta = chip.betas.get(t);
      block.map(columns, [&](auto j) {
        auto x = block.index(j) * 0.0f;
        for (i32 i = 0; i < dim; ++i) x = x + block.row(a.ds0, rows.b, rows.h, i).load(j) * key.get(i);
        z.store(j, x * after);
      });
      for (i32 s = t; s < n; ++s) {
        const float left = decay(chip, s, t), of_dy = scale * left * chip.query_key.get(s * n + t);
        const float of_z = left * chip.key_key.get(s * n + t);
        block.map(columns, [&](auto j) {
          auto x = z.load(j) + rows.of(block, a.dy, s).load(j) * of_dy;
          if (s > t) x = x - chip.z.from(s * columns).load(j) * of_z;
          z.store(j, x);
        });
      }
      block.sync();
      const float dbeta = block.reduce(
          columns, Sum(), [&](auto j) { return z.load(j) * rows.of(block, a.error, t).load(j); });
      block.row(a.dbeta, rows.b, rows.begin + t).set(rows.h, told(dbeta));
      block.map(columns, [&](auto j) {
        auto all = z.load(j) * beta;
        if (a.derror.exists()) all = all + rows.of(block, a.derror, t).load(j);
        z.store(j, all);
        rows.of(block, a.dv, t).store(j, told(all));
      });
      block.sync();
    }
  }

  // Products of dy and z of a row s with what earlier rows have written.
  template <class Block, class Chip>
  static void multiply_changes(Block& block, const GatedDeltaRuleBackward& a, const Rows& rows,
                               const Chip& chip) {
    const i32 n = rows.count, columns = a.v.size[3];
    const float scale = scale_of(a);
    block.reduce_rows(chip.dy_change, n * n, columns, Sum(), [&](i32 pair, auto j) {
      const i32 s = pair / n, t = pair % n;
      return rows.of(block, a.dy, s).load(j) * rows.of(block, a.error, t).load(j) *
             (scale * decay(chip, s, t) * chip.betas.get(t));
    });
    block.reduce_rows(chip.z_change, n * n, columns, Sum(), [&](i32 pair, auto j) {
      const i32 s = pair / n, t = pair % n;
      return chip.z.from(s * columns).load(j) * rows.of(block, a.error, t).load(j) *
             (decay(chip, s, t) * chip.betas.get(t));
    });
    // From the states outside of the chunk: before it to rows of dq and dk, after it to rows of dk.
    const i32 dim = a.q.size[3];
    block.reduce_rows(chip.dq, n * dim, columns, Sum(), [&](i32 at, auto j) {
      const i32 t = at / dim;
      return state_before(block, a, rows, at % dim).load(j) * rows.of(block, a.dy, t).load(j) *
             (scale * exp(chip.sums.get(t)));
    });
    block.reduce_rows(chip.dk, n * dim, columns, Sum(), [&](i32 at, auto j) {
      const i32 t = at / dim, i = at % dim;
      return block.row(a.ds0, rows.b, rows.h, i).load(j) * rows.of(block, a.error, t).load(j) *
                 (decay(chip, n - 1, t) * chip.betas.get(t)) -
             state_before(block, a, rows, i).load(j) * chip.z.from(t * columns).load(j) *
                 exp(chip.sums.get(t));
    });
    block.sync();
  }

  template <class Block, class Chip>
  static void gradients_of_vectors(Block& block, const GatedDeltaRuleBackward& a, const Rows& rows,
                                   const Chip& chip) {
    const i32 n = rows.count, dim = a.q.size[3];
    block.map_rows(n, dim, [&](i32 t, auto i) {
      auto dq = chip.dq.from(t * dim), dk = chip.dk.from(t * dim);
      auto of_query = dq.load(i), of_key = dk.load(i);
      for (i32 s = 0; s < n; ++s) {
        const auto key = rows.of(block, a.k, s).load(i);
        if (s <= t) of_query = of_query + key * chip.dy_change.get(t * n + s);
        if (s < t) of_key = of_key - key * chip.z_change.get(t * n + s);
        if (s > t) of_key = of_key - key * chip.z_change.get(s * n + t);
        if (s >= t) of_key = of_key + rows.of(block, a.q, s).load(i) * chip.dy_change.get(s * n + t);
      }
      dq.store(i, of_query);
      dk.store(i, of_key);
      rows.of(block, a.dq, t).store(i, told(of_query));
      rows.of(block, a.dk, t).store(i, told(of_key));
    });
    block.sync();
  }

  // dg, by the inner product of the state and its gradient, which each row changes by products of vectors.
  template <class Block, class Chip>
  static void gradients_of_numbers(Block& block, const GatedDeltaRuleBackward& a, const Rows& rows,
                                   const Chip& chip) {
    const i32 n = rows.count, dim = a.q.size[3], columns = a.v.size[3];
    auto of_query = chip.numbers, of_key = chip.numbers.from(kDeltaChunk), sums = chip.dy_change;
    block.reduce_rows(of_query, n, dim, Sum(), [&](i32 t, auto i) {
      return rows.of(block, a.q, t).load(i) * chip.dq.from(t * dim).load(i);
    });
    block.reduce_rows(of_key, n, dim, Sum(), [&](i32 t, auto i) {
      return rows.of(block, a.k, t).load(i) * chip.dk.from(t * dim).load(i);
    });
    block.reduce_rows(sums, n, columns, Sum(), [&](i32 t, auto j) {
      return chip.z.from(t * columns).load(j) *
             (rows.of(block, a.v, t).load(j) - rows.of(block, a.error, t).load(j));
    });
    block.sync();
    auto of_state = chip.dq;  // which no other reads any more
    block.reduce_rows(of_state, dim, columns, Sum(), [&](i32 i, auto j) {
      return state_after(block, a, rows, i).load(j) * block.row(a.ds0, rows.b, rows.h, i).load(j);
    });
    block.sync();
    float inner = block.reduce(dim, Sum(), [&](auto i) { return of_state.load(i); });
    for (i32 t = n - 1; t >= 0; --t) {
      inner += of_query.get(t) - of_key.get(t) - 2.0f * sums.get(t);
      block.row(a.dg, rows.b, rows.begin + t).set(rows.h, told(inner));
    }
    block.sync();
  }

  // The gradient of the state before the chunk.
  template <class Block, class Chip>
  static void take_state(Block& block, const GatedDeltaRuleBackward& a, const Rows& rows, const Chip& chip) {
    const i32 n = rows.count, dim = a.q.size[3], columns = a.v.size[3];
    const float scale = scale_of(a);
    block.map_rows(dim, columns, [&](i32 i, auto j) {
      auto to = block.row(a.ds0, rows.b, rows.h, i);
      auto sum = to.load(j) * exp(chip.sums.get(n - 1));
      for (i32 s = 0; s < n; ++s) {
        const float before = exp(chip.sums.get(s));
        sum = sum + rows.of(block, a.dy, s).load(j) * (scale * before * rows.of(block, a.q, s).get(i)) -
              chip.z.from(s * columns).load(j) * (before * rows.of(block, a.k, s).get(i));
      }
      if (a.dstarts.exists()) sum = sum + block.row(a.dstarts, rows.b, rows.h, rows.chunk * dim + i).load(j);
      to.store(j, told(sum));
    });
    block.sync();
  }
};

}  // namespace gated_delta_rule_backward
