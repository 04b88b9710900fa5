// Scores of the flash_attention family, and its loops over sequences. Included inside the namespace of each body of the family.

constexpr float kLowest = -3e38f, kUnseen = -1e38f;
constexpr i32 kChunk = 64;  // rows of the other side that are on chip at a time

// ln x of a positive normal x: Cephes logf, 1 ulp. Infinity and NaN stay.
inline float natural_log(float x) {
  if (!(x - x == 0.0f)) return x;
  const u32 bits = __builtin_bit_cast(u32, x);
  float exponent = float(i32(bits >> 23) - 126);
  float m = __builtin_bit_cast(float, (bits & 0x007fffffu) | 0x3f000000u);  // [0.5, 1)
  if (m < 0.70710678f) exponent -= 1, m += m;
  m -= 1;
  float p = 7.0376836292e-2f;
  constexpr float kNext[] = {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                             -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f};
  for (const float next : kNext) p = fma(p, m, next);
  const float square = m * m;
  const float low = fma(exponent, -2.12194440e-4f, p * m * square) - 0.5f * square;
  return fma(exponent, 0.693359375f, m + low);
}

template <class Args>
inline float score_scale(const Args& a) {
  return a.scale != 0 ? a.scale : rsqrt(float(a.q.last()));
}

// A scaled score after the cap, and its slope.
template <class V>
struct Capped {
  V score, slope;
};

template <class Args, class V>
inline Capped<V> capped(const Args& a, V x) {
  if (!(a.softcap > 0)) return {x, V(1.0f)};
  const V t = tanh(x * V(1 / a.softcap));
  return {t * V(a.softcap), V(1.0f) - t * t};
}

// x at an index inside the range, `otherwise` outside.
template <class V>
inline V inside(AttentionRange range, V index, V x, V otherwise) {
  return where_less(index, V(float(range.begin)), otherwise,
                    where_less(index, V(float(range.end)), x, otherwise));
}

// exp(x - top), 0 for a score that counts as unseen.
template <class V>
inline V weight_below(V x, V top) {
  return where_less(x, V(kUnseen), V(0.0f), exp(x - top));
}

inline AttentionRange from(AttentionRange range, i32 first) {
  return {range.begin - first, range.end - first};
}

template <class Block>
float slope_of_head(Block& block, const Tensor& slopes, i32 head) {
  return slopes.exists() ? float(block.row(slopes).get(head)) : 0.0f;
}

// The row of the bias that belongs to a query.
template <class Block>
auto bias_row(Block& block, const Tensor& bias, i32 batch, i32 head, i32 query) {
  return block.row(bias, bias.size[0] == 1 ? 0 : batch, bias.size[1] == 1 ? 0 : head, query);
}

// Queries of one sequence that have one list: `rows` pairs of a query and a head.
struct Queries {
  AttentionSequence sequence;
  AttentionMask mask;
  BlockList list;
  i32 batch, group;  // group: heads that share keys
  i32 first_head, heads;
  i32 first, last;  // queries of the tensor

  i32 rows() const { return (last - first) * heads; }
  i32 query(i32 row) const { return first + row / heads; }
  i32 head(i32 row) const { return first_head + row % heads; }
  AttentionRange keys_of(i32 row) const { return mask.keys_of(query(row) - sequence.query_begin); }
  AttentionRange all_keys() const { return {keys_of(0).begin, keys_of(rows() - 1).end}; }
  i64 position(i32 row) const { return mask.position(query(row) - sequence.query_begin); }
};

// Calls f(Queries) for the parts of a tile's queries [first, last) of one sequence: without lists there is one, of all heads of the
// tile's group; otherwise each head of each block is one.
template <class Block, class Args, class F>
void each_list(Block& block, const Args& a, const TileCoord& t, const AttentionSequence& s,
               AttentionRange queries, F&& f) {
  const bool lists = a.kv_num_blocks.exists();
  const i32 heads = a.q.size[2] / a.k.size[2], head_end = (t[1] + 1) * heads, step = lists ? 1 : heads;
  for (i32 head = t[1] * heads; head < head_end; head += step)
    for (i32 from = queries.begin, to; from < queries.end; from = to) {
      to = part_end(from, queries.end, lists ? a.block_q : 0);
      const BlockList list =
          list_of(block, a.kv_num_blocks, a.kv_indices, t[0], head, from / a.block_q, a.block_k);
      f(Queries{s, attention_mask(a, s), list, t[0], t[1], head, step, from, to});
    }
}

// Calls f(first row, number of rows) for chunks of a side with `rows` rows, in the blocks that a list names, as far as they are seen.
template <class F>
void each_chunk(const BlockList& list, AttentionRange seen, i32 rows, F&& f) {
  for (i32 n = 0; n < list.count; ++n) {
    const AttentionRange block = list.range(n, rows);
    const i32 end = block.end < seen.end ? block.end : seen.end;
    const i32 before = seen.begin > block.begin ? (seen.begin - block.begin) / kChunk * kChunk : 0;
    for (i32 begin = block.begin + before; begin < end; begin += kChunk)
      f(begin, block.end - begin < kChunk ? block.end - begin : kChunk);
  }
}

// One side of the sequences of a call: queries or keys.
struct Side {
  const i32* begins;  // the first row of each sequence, and the end of the last; null: one sequence
  i32 size;

  i32 at(i32 n) const { return begins[n] < 0 ? 0 : begins[n] > size ? size : begins[n]; }
};

template <class Block>
Side side_of(Block& block, const Tensor& begins, i32 size) {
  return {begins.exists() ? block.ints(begins) : nullptr, size};
}

// Calls f(first, last, own begin, own end, other begin, other end) for each part of [begin, end) of one side that belongs to one
// sequence, with that sequence on both sides. Rows of no sequence come as a sequence that has nothing on the other side. There is
// one call of f: a compiler for a device makes its code as often as f is called.
template <class F>
void each_sequence(const Side& own, const Side& other, i32 sequences, i32 begin, i32 end, F&& f) {
  i32 n = 0;
  for (i32 done = begin; done < end;) {
    i32 to = end, own_begin = 0, own_end = own.size, other_begin = 0, other_end = other.size;
    if (own.begins) {
      const auto first = [&] { return own.at(n) > done ? own.at(n) : done; };
      const auto last = [&] { return own.at(n + 1) < end ? own.at(n + 1) : end; };
      while (n < sequences && first() >= last()) ++n;
      if (n < sequences && own.at(n) <= done) {
        to = last(), own_begin = own.at(n), own_end = own.at(n + 1);
        other_begin = other.at(n);
        other_end = other.at(n + 1) < other_begin ? other_begin : other.at(n + 1);
        ++n;
      } else {
        to = n < sequences ? own.at(n) : end;
        own_begin = done, own_end = to, other_begin = other_end = 0;
      }
    }
    f(done, to, own_begin, own_end, other_begin, other_end);
    done = to;
  }
}
