// Tile body of quantize. Included once per target, inside its namespace.
namespace quantize {

#include "heddle/ops/quantize/encode.cuh"

struct Body {
  template <class Block>
  static void run(Block& block, const Quantize& a, const TileCoord& t) {
    block.inputs();
    const i32 columns = a.x.last(), group = a.by == kScaleByRow ? columns : kCodeBlock;
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto scales = block.row(a.scales, row);
      for (i32 begin = 0; begin < columns; begin += group) {
        auto x = block.row(a.x, row).from(begin);
        const i32 count = columns - begin < group ? columns - begin : group;
        const float scale =
            scale_for(block.reduce(count, Max(), [&](auto i) { return abs(x.load(i)); }), a.code);
        scales.set(begin / group, scale);
        auto codes = block.row(a.codes, row);
        for (i32 at = 0; at < count; ++at)
          codes.set_byte(begin + at, code_of(quotient(x.get(at), scale), a.code));
      }
    }
  }
};

}  // namespace quantize
