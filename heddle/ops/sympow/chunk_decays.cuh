// Decays of chunks. Included in the namespaces of the bodies that use it.

// decays[g] = exp(l at the end of chunk g) of head h of batch b, or 1 without l.
template <class Block, class View>
inline void load_decays(Block& block, const Tensor& l, i32 chunk, i32 chunks, i32 b, i32 h, View decays) {
  if (!l.exists()) return block.map(chunks, [&](auto g) { decays.store(g, block.index(g) * 0.0f + 1.0f); });
  const ChunkTiles tiles(l.size[1], chunk);
  // All chunks but the last are equally long.
  auto ends = block.row(l, b, tiles.chunk_end(0) - 1).from(h).every(l.stride[1] * tiles.chunk);
  block.map(chunks - 1, [&](auto g) { decays.store(g, exp(ends.load(g))); });
  decays.set(chunks - 1, exp(block.row(l, b, l.size[1] - 1).get(h)));
}
