// A tile of a product of two activations. Included inside the namespace of each body that makes one.

// sum += products of `chunk` terms each; terms [begin, end) are whole chunks. fill(product, begin, chunk) puts them there.
template <class Block, class Fragment, class Fill>
inline void add_products(Block& block, Fragment& sum, DType dtype, i32 begin, i32 end, i32 chunk,
                         Fill&& fill) {
  if (begin == end) return;
  auto product = block.product(sum.rows, sum.cols, chunk, dtype);
  auto part = block.fragment(sum.m0, sum.rows, sum.n0, sum.cols);
  for (; begin < end; begin += chunk) {
    fill(product, begin, chunk);
    block.sync();
    block.mma(part, product);
    block.sync();
    block.map_rows(
        sum.rows, sum.cols, [&](i32 m, auto i) { return sum.row(m).load(i) + part.row(m).load(i); },
        [&](i32 m, auto i, auto value) { sum.row(m).store(i, value); });
  }
}

// out[m, n] = sum of `terms` products, of tile t = {m, m, n, n}. `dtype` is the right side's.
// Terms are added in chunks of kChunk.
template <i32 kChunk, class Block, class Fill>
inline void sum_of_products(Block& block, const Tensor& out, const TileCoord& t, DType dtype, i32 terms,
                            Fill&& fill) {
  const i32 whole = terms / kChunk * kChunk;
  auto sum = block.fragment(t[0], t[1] - t[0], t[2], t[3] - t[2]);
  block.map_rows(sum.rows, sum.cols, [&](i32 m, auto i) { sum.row(m).store(i, 0.0f); });
  add_products(block, sum, dtype, 0, whole, kChunk, fill);
  add_products(block, sum, dtype, whole, terms, terms - whole, fill);
  block.map_rows(
      sum.rows, sum.cols, [&](i32 m, auto i) { return sum.row(m).load(i); },
      [&](i32 m, auto i, auto value) { block.row(out, t[0] + m).from(t[2]).store(i, value); });
}
