// Tile body of quantize_both. Included once per target, inside its namespace.
namespace quantize_both {

#include "heddle/ops/quantize/encode.cuh"

struct Body {
  // The blocks of the rows [t[0], t[1]), then those of the columns: of rows that are whole blocks.
  template <class Block>
  static void run(Block& block, const QuantizeBoth& a, const TileCoord& t) {
    block.inputs();
    const i32 columns = a.x.last();
    for (i32 row = t[0]; row < t[1]; ++row)
      for (i32 begin = 0; begin < columns; begin += kCodeBlock) {
        auto x = block.row(a.x, row).from(begin);
        const i32 count = columns - begin < kCodeBlock ? columns - begin : kCodeBlock;
        const float scale =
            scale_for(block.reduce(count, Max(), [&](auto i) { return abs(x.load(i)); }), a.code);
        block.row(a.scales, row).set(begin / kCodeBlock, scale);
        auto codes = block.row(a.codes, row);
        for (i32 at = 0; at < count; ++at)
          codes.set_byte(begin + at, code_of(quotient(x.get(at), scale), a.code));
      }
    for (i32 begin = t[0]; begin < t[1]; begin += kCodeBlock)
      for (i32 column = 0; column < columns; ++column) {
        const i32 count = t[1] - begin < kCodeBlock ? t[1] - begin : kCodeBlock;
        const auto get = [&](i32 i) { return block.row(a.x, begin + i).get(column); };
        float most = 0;
        for (i32 i = 0; i < count; ++i) {
          const float size = get(i) < 0 ? -get(i) : get(i);
          most = max(most, size);
        }
        const float scale = scale_for(most, a.code);
        block.row(a.transposed_scales, column).set(begin / kCodeBlock, scale);
        auto codes = block.row(a.transposed, column);
        for (i32 at = 0; at < count; ++at)
          codes.set_byte(begin + at, code_of(quotient(get(at), scale), a.code));
      }
  }
};

}  // namespace quantize_both
