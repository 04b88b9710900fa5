// The norm of a row on a GPU from sm_80 on: a thread loads eight elements at a time, once, together with their weights and biases,
// so that a row costs one round trip to memory. Included once per device program, after layer_norm.cuh, whose body takes
// what does not fit here.
namespace layer_norm {

struct DeviceBody {
  static constexpr i32 kWords = 2;  // words of eight elements that a thread has at most

  template <class Out>
  static bool fits(const LayerNorm& a, const View& x, const Out& out) {
    const i32 columns = a.x.last();
    return columns % 8 == 0 && columns <= kWords * 8 * Team::size() && in_octets(x) && in_octets(out) &&
           in_octets(View{a.weight.data, a.weight.dtype}) &&
           (!a.bias.exists() || in_octets(View{a.bias.data, a.bias.dtype}));
  }

  template <class Block, class Out>
  static void prologue(Block& block, const LayerNorm& a, i32 row, Out out) {
    const View x = block.row(a.x, row), weight = block.row(a.weight);
    if (!fits(a, x, out)) return Body::prologue(block, a, row, out);
    const i32 octets = a.x.last() / 8;
    Octet values[kWords], weights[kWords], biases[kWords];
    each_word(octets, [&](i32 n, i32 at) {
      values[n].load(x, at), weights[n].load(weight, at);
      if (a.bias.exists()) biases[n].load(block.row(a.bias), at);
    });
    float sum = 0, squares = 0;
#pragma unroll
    for (i32 n = 0; n < kWords; ++n) {
      if (n * Team::size() >= octets) break;
      values[n].decode(x.dtype), weights[n].decode(weight.dtype);
      biases[n].decode(a.bias.exists() ? a.bias.dtype : DType::kF32);
#pragma unroll
      for (i32 i = 0; i < 8; ++i) sum += values[n].value[i];  // zeros past the end
    }
    const float mean = block.reduce(Sum(), sum) / float(8 * octets);
    each_word(octets, [&](i32 n, i32) {
#pragma unroll
      for (i32 i = 0; i < 8; ++i) {
        values[n].value[i] -= mean;
        squares = fma(values[n].value[i], values[n].value[i], squares);
      }
    });
    const float scale = rsqrt(block.reduce(Sum(), squares) / float(8 * octets) + a.eps);
    each_word(octets, [&](i32 n, i32 at) {
#pragma unroll
      for (i32 i = 0; i < 8; ++i)
        values[n].value[i] = fma(values[n].value[i] * scale, weights[n].value[i], biases[n].value[i]);
      store_octet(values[n], out, at);
    });
  }

  // f(word, octet of the row) for those that the thread has.
  template <class F>
  static void each_word(i32 octets, F&& f) {
#pragma unroll
    for (i32 n = 0; n < kWords; ++n)
      if (const i32 at = Team::thread() + n * Team::size(); n * Team::size() < octets && at < octets)
        f(n, at);
  }

  template <class Block>
  static void run(Block& block, const LayerNorm& a, const TileCoord& t) {
    block.inputs();
    for (i32 row = t[0]; row < t[1]; ++row) prologue(block, a, row, block.row(a.y, row));
  }
};

}  // namespace layer_norm
