// Tile body of quantize_at. Included once per target, inside its namespace.
namespace quantize_at {

#include "heddle/ops/quantize/encode.cuh"

struct Body {
  template <class Block>
  static void run(Block& block, const QuantizeAt& a, const TileCoord& t) {
    block.inputs();
    const i32 rows = a.x.size[0], columns = a.x.last();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.x, row);
      auto codes = block.row(a.codes, row);
      for (i32 column = 0; column < columns; ++column)
        codes.set_byte(column, at(block, a.scales, x.get(column), a.code, {row, column, rows}));
    }
    for (i32 column = 0; column < columns; ++column) {
      auto codes = block.row(a.transposed, column);
      for (i32 row = t[0]; row < t[1]; ++row)
        codes.set_byte(row, at(block, a.transposed_scales, block.row(a.x, row).get(column), a.code,
                               {column, row, columns}));
    }
  }

  struct Place {
    i32 line, term, lines;
  };
  template <class Block>
  static i32 at(Block& block, const Tensor& scales, float x, i32 code, const Place& place) {
    const i32 line = place_of_scale(place.line, scales.size[0], place.lines);
    const float scale = block.row(scales, line).get(scales.size[1] == 1 ? 0 : place.term / kCodeBlock);
    return code_of(quotient(x, scale), code);
  }
};

}  // namespace quantize_at
