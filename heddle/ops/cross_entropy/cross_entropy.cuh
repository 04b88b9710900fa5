// Tile body of cross_entropy. Included once per target, inside its namespace.
namespace cross_entropy {

#include "heddle/ops/cross_entropy/target.cuh"

// The natural logarithm of one normal float above 0. Cephes logf: x = m * 2^e with m near 1, then a polynomial of degree 9 in
// m - 1; 1 ulp. Infinity and what is not a number stay.
inline float natural_log(float x) {
  if (!(x - x == 0.0f)) return x;
  const int bits = __builtin_bit_cast(int, x);
  int e = (bits >> 23) - 127;
  float m = __builtin_bit_cast(float, (bits & 0x7fffff) | 0x3f800000);
  if (m > 1.41421356f) m = m * 0.5f, ++e;
  const float t = m - 1.0f, n = float(e);
  float p = 7.0376836292e-2f;
  p = p * t - 1.1514610310e-1f;
  p = p * t + 1.1676998740e-1f;
  p = p * t - 1.2420140846e-1f;
  p = p * t + 1.4249322787e-1f;
  p = p * t - 1.6668057665e-1f;
  p = p * t + 2.0000714765e-1f;
  p = p * t - 2.4999993993e-1f;
  p = p * t + 3.3333331174e-1f;
  p = p * t * t * t - 2.12194440e-4f * n - 0.5f * t * t;
  return t + p + 0.693359375f * n;
}

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
