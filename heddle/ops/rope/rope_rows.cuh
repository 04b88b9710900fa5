// Tile body of rope_rows. Included once per target, inside its namespace.
namespace rope_rows {

#include "heddle/ops/rope/turn_row_heads.cuh"

struct Body : Epilogue<Body> {
  static constexpr i32 kTakes = 2, kGives = 2;  // partners, which lie side by side in a chain

  static const Tensor& input(const RopeRows& a) { return a.x; }
  static const Tensor& output(const RopeRows& a) { return a.y; }

  template <class Block>
  static auto operand(Block& block, const RopeRows& a, i32 row) {
    return block.row(a.table, row);
  }
  // angle: its cosine and sine.
  template <class Pair>
  static Pair value(const RopeRows&, Pair x, Pair angle) {
    return {x.first * angle.first - x.second * angle.second, x.second * angle.first + x.first * angle.second};
  }

  // Head after head; `inside` is also where `column` lies in its head.
  template <class F>
  static void each_span(const RopeRows& a, i32 begin, i32 end, F&& f) {
    const i32 stop = a.heads * a.head_dim < end ? a.heads * a.head_dim : end;
    for (i32 at = begin; at < stop;) {
      const i32 inside = at % a.head_dim, head_end = at - inside + a.head_dim;
      const i32 next = head_end < stop ? head_end : stop, turned = at - inside + a.rotary_dim;
      const i32 pairs = ((turned < next ? turned : next) - at) / 2;
      if (pairs > 0) f(at, inside, pairs);
      at = next;
    }
  }

  static bool changes(const RopeRows& a, i32 column) {
    return column < a.heads * a.head_dim && column % a.head_dim < a.rotary_dim;
  }
  static i32 operand_column(const RopeRows& a, i32 column) {
    return changes(a, column) ? column % a.head_dim : 0;
  }

  template <class Block>
  static void run(Block& block, const RopeRows& a, const TileCoord& t) {
    block.inputs();
    each_head(block, a, a.x, a.y, t, [&](auto table, auto in, auto out) {
      if (!a.interleaved) turn_halves<Body>(block, a, table, in, out);
    });
    if (a.interleaved) Epilogue::run(block, a, t);
  }
};

}  // namespace rope_rows
