// The norm of a row on a GPU from sm_80 on: eight elements a thread, loaded once and together with their weights, so that
// a row costs one trip to memory. Included once per device program, behind rms_norm.cuh, whose body takes what does not
// fit here.
namespace rms_norm {

struct DeviceBody {
  static constexpr i32 kWords = 2;  // of eight elements, a thread's at most

  static bool in_words(const View& row) {
    return row.dtype != DType::kI32 && row.dtype != DType::kU8 && reinterpret_cast<u64>(row.data) % 16 == 0;
  }
  static bool fits(i32 columns, const View& x, const View& weight, const View& out) {
    return columns % 8 == 0 && columns <= kWords * 8 * kConsumers && in_words(x) && in_words(weight) &&
           in_words(out);
  }

  template <class Block>
  static void prologue(Block& block, const RmsNorm& a, i32 row, View out) {
    const View x = block.row(a.x, row), weight = block.row(a.weight);
    const i32 columns = a.x.last();
    if (!fits(columns, x, weight, out)) return Body::prologue(block, a, row, out);
    Octet values[kWords], weights[kWords];
#pragma unroll
    for (i32 n = 0; n < kWords; ++n) {
      const i32 at = i32(arch::thread()) + n * kConsumers;
      if (at < columns / 8) values[n].load(x, at), weights[n].load(weight, at);
    }
    float squares = 0;
#pragma unroll
    for (i32 n = 0; n < kWords; ++n) {
      values[n].decode(x.dtype), weights[n].decode(weight.dtype);
#pragma unroll
      for (i32 i = 0; i < 8; ++i) squares = fma(values[n].value[i], values[n].value[i], squares);
    }
    squares = block.reduce(Sum(), squares);
    const float scale = rsqrt(squares / float(columns) + a.eps);
#pragma unroll
    for (i32 n = 0; n < kWords; ++n) {
      const i32 at = i32(arch::thread()) + n * kConsumers;
#pragma unroll
      for (i32 i = 0; i < 8; ++i) values[n].value[i] = values[n].value[i] * scale * weights[n].value[i];
      if (at < columns / 8) values[n].store(out, at);
    }
  }

  template <class Block>
  static void run(Block& block, const RmsNorm& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) prologue(block, a, row, block.row(a.y, row));
  }
};

}  // namespace rms_norm
