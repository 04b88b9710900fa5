// Tile body of cross_entropy. Included once per target, inside its namespace.
namespace cross_entropy {

#include "heddle/ops/cross_entropy/target.cuh"
#include "heddle/tile/logarithm.cuh"

struct Body {
  // From a row's log-sum-exp and, for smoothing, the sum of its capped logits.
  template <class Block>
  static void finish(Block& block, const CrossEntropy& a, i32 row, float lse, float sum) {
    const i32 columns = a.logits.last();
    const Target target =
        target_of(block.row(a.target), a.target.dtype == DType::kI64, row, columns, a.ignore_index);
    const float own =
        target.column < 0 ? 0.0f : capped(block.row(a.logits, row).get(target.column), a.softcap);
    block.row(a.loss).set(row, loss_of(a, columns, target, lse, own, sum));
    block.row(a.lse).set(row, lse);
  }

  template <class Block>
  static void run(Block& block, const CrossEntropy& a, const TileCoord& t) {
    block.inputs();
    const i32 columns = a.logits.last();
    for (i32 row = t[0]; row < t[1]; ++row) {
      auto x = block.row(a.logits, row);
      const float top = capped(block.reduce(columns, Max(), [&](auto i) { return x.load(i); }), a.softcap);
      const float terms =
          block.reduce(columns, Sum(), [&](auto i) { return exp(capped(x.load(i), a.softcap) - top); });
      float sum = 0;
      if (a.label_smoothing != 0.0f)
        sum = block.reduce(columns, Sum(), [&](auto i) { return capped(x.load(i), a.softcap); });
      finish(block, a, row, top + natural_log(terms), sum);
    }
  }
};

}  // namespace cross_entropy
