// Positions in chunks, and chunks in tiles of rows: no tile has rows of two chunks.
// Host and device include it: no standard headers.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

constexpr i32 kChunkRows = 64;  // rows of a tile
constexpr i32 kRun = 512;       // elements that a running sum takes at a time

struct ChunkTiles {
  i32 positions;
  i32 chunk;  // positions of a chunk; the last may have fewer

  ChunkTiles(i32 all, i32 size) : positions(all), chunk(size > 0 && size < all ? size : all > 0 ? all : 1) {}

  // Sums such as positions + chunk might not fit.
  i32 chunks() const { return (positions - 1) / chunk + 1; }
  i32 tiles_of_chunk() const { return (chunk - 1) / kChunkRows + 1; }
  i32 tiles() const {
    const i32 last = positions - (chunks() - 1) * chunk;
    return (chunks() - 1) * tiles_of_chunk() + (last - 1) / kChunkRows + 1;
  }
  i32 chunk_of(i32 tile) const { return tile / tiles_of_chunk(); }
  i32 chunk_begin(i32 c) const { return c * chunk; }
  i32 chunk_end(i32 c) const { return positions - c * chunk < chunk ? positions : (c + 1) * chunk; }
  i32 begin(i32 tile) const { return chunk_begin(chunk_of(tile)) + tile % tiles_of_chunk() * kChunkRows; }
  i32 end(i32 tile) const {
    const i32 most = begin(tile) + kChunkRows, last = chunk_end(chunk_of(tile));
    return most < last ? most : last;
  }
};

}  // namespace heddle
