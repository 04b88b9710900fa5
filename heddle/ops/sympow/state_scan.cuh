// Tile body of state_scan: an element of the state goes through all chunks. Included once per target, inside its namespace.
namespace state_scan {

#include "heddle/ops/sympow/chunk_decays.cuh"

constexpr i32 kRows = 64;  // a tile has so many at most

struct Body {
  template <class Block>
  static void run(Block& block, const StateScan& a, const TileCoord& t) {
    block.inputs();
    const i32 heads = a.u.size[1], b = t[0] / heads, h = t[0] % heads, width = a.width();
    const i32 first = t[1] * kRows, rows = width - first < kRows ? width - first : kRows;
    auto decays = block.scratch(a.chunks);
    load_decays(block, a.l, a.chunk, a.chunks, b, h, decays);
    block.sync();
    block.map_rows(rows, a.u.size[3], [&](i32 m, auto i) {
      auto sum = a.s0.exists() ? block.row(a.s0, b, h, first + m).load(i) : block.index(i) * 0.0f;
      for (i32 g = 0; g < a.chunks; ++g) {
        const i32 row = g * width + first + m;
        block.row(a.s, b, h, row).store(i, sum);
        sum = sum * decays.get(g) + block.row(a.u, b, h, row).load(i);
      }
      block.row(a.last, b, h, first + m).store(i, sum);
    });
  }
};

}  // namespace state_scan
