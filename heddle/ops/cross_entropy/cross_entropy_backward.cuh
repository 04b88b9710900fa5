// Tile body of cross_entropy_backward. Included once per target, inside its namespace.
namespace cross_entropy_backward {

#include "heddle/ops/cross_entropy/target.cuh"

// The numbers of a row: dz = of_p * p - less, and - own at the target's column.
struct Row {
  i32 column;
  float lse, of_p, less, own;
};

struct Body {
  template <class Block>
  static Row row_of(Block& block, const CrossEntropyBackward& a, i32 row) {
    const i32 columns = a.logits.last();
    const Target target =
        target_of(block.row(a.target), a.target.dtype == DType::kI64, row, columns, a.ignore_index);
    const float lse = block.row(a.lse).get(row), s = a.label_smoothing;
    const float given = target.gain == 0.0f ? 0.0f : block.row(a.dloss).get(row) * target.gain;
    float of_p = given * (1 + 2 * a.z_loss * lse);
    if (a.dlse.exists()) of_p += block.row(a.dlse).get(row);
    return {target.column, lse, of_p, s == 0.0f ? 0.0f : given * s / float(columns), given * (1 - s)};
  }

  template <class V>
  static V value(const CrossEntropyBackward& a, const Row& r, V logit, V column) {
    const V z = capped(logit, a.softcap);
    const V at_target = where_less(abs(column - V(float(r.column))), V(0.5f), V(r.own), V(0.0f));
    const V dz = exp(z - V(r.lse)) * V(r.of_p) - V(r.less) - at_target;
    return a.softcap > 0.0f ? dz * slope_of_cap(z, a.softcap) : dz;
  }

  template <class Block>
  static void run(Block& block, const CrossEntropyBackward& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.logits, row).from(t[2]), dx = block.row(a.dlogits, row).from(t[2]);
      const Row r = row_of(block, a, row);
      block.map(t[3] - t[2], [&](auto i) {
        auto logit = x.load(i);
        dx.store(i, value(a, r, logit, decltype(logit)(block.index(i)) + float(t[2])));
      });
    }
  }
};

}  // namespace cross_entropy_backward
