// Tile body of cross_entropy_backward. Included once per target, inside its namespace.
namespace cross_entropy_backward {

#include "heddle/ops/cross_entropy/target.cuh"

struct Body {
  template <class Block>
  static Slopes slopes_of_row(Block& block, const CrossEntropyBackward& a, i32 row) {
    const i32 columns = a.logits.last();
    const Target target =
        target_of(block.row(a.target), a.target.dtype == DType::kI64, row, columns, a.ignore_index);
    return slopes_of(a, columns, target, [&](const Tensor& tensor) { return block.row(tensor).get(row); });
  }

  template <class V>
  static V value(const CrossEntropyBackward& a, const Slopes& r, V logit, V column) {
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
      const Slopes r = slopes_of_row(block, a, row);
      block.map(t[3] - t[2], [&](auto i) {
        auto logit = x.load(i);
        dx.store(i, value(a, r, logit, decltype(logit)(block.index(i)) + float(t[2])));
      });
    }
  }
};

}  // namespace cross_entropy_backward
