// Parts of the whole kernels of power attention.
#pragma once

#include "heddle/kit/kernel.cuh"
#include "heddle/ops/sympow/chunk_tiles.h"

namespace heddle::device::power_attention_parts {

// The number of tiles of kRows positions.
template <i32 kRows, class Args>
inline i32 tiles_of(const Args& a) {
  const ChunkTiles chunks = a.tiles();
  return a.q.size[0] * a.q.size[2] * chunks.chunks() * ((chunks.chunk + kRows - 1) / kRows);
}

// A tile of queries, with the blocks of kKeys keys that it reads. Tiles of a chunk come with the longest first.
template <i32 kRows, i32 kKeys>
struct QueryTile {
  i32 b, h, chunk_begin, begin, end;  // queries [begin, end) and further ones of the chunk

  template <class Args>
  QueryTile(const Args& a, i32 tile) {
    const ChunkTiles chunks = a.tiles();
    const i32 per = (chunks.chunk + kRows - 1) / kRows, all = per * chunks.chunks();
    const i32 chunk = tile % all / per;
    b = tile / all / a.q.size[2], h = tile / all % a.q.size[2];
    chunk_begin = chunks.chunk_begin(chunk), end = chunks.chunk_end(chunk);
    begin = chunk_begin + (per - 1 - tile % per) * kRows;
  }
  // Blocks of keys that the tile reads; 0 for one that the last chunk does not reach.
  i32 blocks() const { return begin < end ? (min(begin + kRows, end) - chunk_begin + kKeys - 1) / kKeys : 0; }
};

}  // namespace heddle::device::power_attention_parts
