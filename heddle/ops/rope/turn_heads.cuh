// The rotation of heads by cosines and sines of each element. Included inside the namespace of each op that turns.

// Elements that turn together, or their cosines, or their sines.
template <class Value>
struct Couple {
  Value first, second;
};

template <bool kBack, class Value>
inline Couple<Value> turned(Couple<Value> x, Couple<Value> cos, Couple<Value> sin) {
  if constexpr (kBack)
    return {x.first * cos.first + x.second * sin.second, x.second * cos.second - x.first * sin.first};
  else
    return {x.first * cos.first - x.second * sin.first, x.second * cos.second + x.first * sin.second};
}

// Element i of each half.
template <class View, class Index>
inline auto halves(View view, i32 pairs, Index i) {
  return Couple<decltype(view.load(i))>{view.load(i), view.from(pairs).load(i)};
}

// Elements 2i and 2i + 1.
template <class View, class Index>
inline auto neighbours(View view, Index i) {
  const auto pair = view.load_pair(i);
  return Couple<decltype(view.load(i))>{pair.first, pair.second};
}

template <bool kBack, class Block, class Args>
inline void turn_heads(Block& block, const Args& a, const Tensor& from, const Tensor& to,
                       const TileCoord& t) {
  block.inputs();
  const i32 heads = from.size[1], turns = a.cos.last(), pairs = turns / 2, rest = from.last() - turns;
  for (i32 position = t[1]; position < t[2]; ++position) {
    const i32 batch = a.cos.size[0] == 1 ? 0 : t[0];
    const auto cos = block.row(a.cos, batch, position), sin = block.row(a.sin, batch, position);
    block.map_rows(heads, pairs, [&](i32 head, auto i) {
      const auto x = block.row(from, t[0], head, position);
      auto y = block.row(to, t[0], head, position);
      if (a.interleaved) {
        const auto made = turned<kBack>(neighbours(x, i), neighbours(cos, i), neighbours(sin, i));
        y.store_pair(i, made.first, made.second);
      } else {
        const auto made = turned<kBack>(halves(x, pairs, i), halves(cos, pairs, i), halves(sin, pairs, i));
        y.store(i, made.first);
        y.from(pairs).store(i, made.second);
      }
    });
    block.map_rows(heads, rest, [&](i32 head, auto i) {
      const auto x = block.row(from, t[0], head, position).from(turns);
      auto y = block.row(to, t[0], head, position).from(turns);
      y.store(i, x.load(i));
    });
  }
}
