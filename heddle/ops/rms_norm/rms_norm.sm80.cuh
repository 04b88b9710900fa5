// The norm of a row on a GPU from sm_80 on: a thread loads eight elements at a time, once, together with their weights, so that
// a row costs one round trip to memory. Included once per device program, after rms_norm.cuh, whose body takes what does
// not fit here.
namespace rms_norm {

struct DeviceBody {
  static constexpr i32 kWords = 2;   // words of eight elements that a thread has at most
  static constexpr i32 kAtOnce = 4;  // words that a lane loads together if its warp has a row

  template <class Out>
  static bool fits(i32 columns, const View& x, const View& weight, const Out& out) {
    return columns % 8 == 0 && columns <= kWords * 8 * Team::size() && in_octets(x) && in_octets(weight) &&
           in_octets(out);
  }

  template <class Block, class Out>
  static void prologue(Block& block, const RmsNorm& a, i32 row, Out out) {
    const View x = block.row(a.x, row), weight = block.row(a.weight);
    const i32 columns = a.x.last();
    if (!fits(columns, x, weight, out)) return Body::prologue(block, a, row, out);
    Octet values[kWords], weights[kWords];
#pragma unroll
    for (i32 n = 0; n < kWords; ++n) {
      const i32 at = Team::thread() + n * Team::size();
      if (n * Team::size() >= columns / 8) break;
      if (at < columns / 8) values[n].load(x, at), weights[n].load(weight, at);
    }
    float squares = 0;
#pragma unroll
    for (i32 n = 0; n < kWords; ++n) {
      if (n * Team::size() >= columns / 8) break;
      values[n].decode(x.dtype);
#pragma unroll
      for (i32 i = 0; i < 8; ++i) squares = fma(values[n].value[i], values[n].value[i], squares);
    }
    squares = block.reduce(Sum(), squares);
    const float scale = rsqrt(squares / float(columns) + a.eps);
#pragma unroll
    for (i32 n = 0; n < kWords; ++n) {
      const i32 at = Team::thread() + n * Team::size();
      if (n * Team::size() >= columns / 8) break;
      weights[n].decode(weight.dtype);
#pragma unroll
      for (i32 i = 0; i < 8; ++i) values[n].value[i] = values[n].value[i] * scale * weights[n].value[i];
      if (at < columns / 8) store_octet(values[n], out, at);
    }
  }

  // In a step of many rows, each warp takes a row and reads it twice, the second time from the cache.
  template <class Block>
  static void run_rows(Block& block, const RmsNorm& a, const TileCoord& t) {
    const i32 lane = Team::lane(), octets = a.x.last() / 8;
    const View weight = block.row(a.weight);
    for (i32 row = t[0] + Team::warp(); row < t[1]; row += Team::warps()) {
      const View x = block.row(a.x, row), out = block.row(a.y, row);
      float squares = 0;
#pragma unroll 8
      for (i32 at = lane; at < octets; at += 32) {
        Octet values;
        values.load(x, at);
        values.decode(x.dtype);
#pragma unroll
        for (i32 i = 0; i < 8; ++i) squares = fma(values.value[i], values.value[i], squares);
      }
      const float scale = rsqrt(Team::over_warp(Sum(), squares) / float(a.x.last()) + a.eps);
#pragma unroll 1
      for (i32 begin = lane; begin < octets; begin += 32 * kAtOnce) {
        Octet values[kAtOnce], weights[kAtOnce];
#pragma unroll
        for (i32 n = 0; n < kAtOnce; ++n)
          if (const i32 at = begin + 32 * n; at < octets) values[n].load(x, at), weights[n].load(weight, at);
#pragma unroll
        for (i32 n = 0; n < kAtOnce; ++n) {
          values[n].decode(x.dtype), weights[n].decode(weight.dtype);
#pragma unroll
          for (i32 i = 0; i < 8; ++i) values[n].value[i] = values[n].value[i] * scale * weights[n].value[i];
          if (const i32 at = begin + 32 * n; at < octets) values[n].store(out, at);
        }
      }
    }
  }
  static bool in_words(const Tensor& rows) {
    return size_of(rows.dtype) >= 2 && reinterpret_cast<u64>(rows.data) % 16 == 0 &&
           rows.stride[0] * size_of(rows.dtype) % 16 == 0;
  }

  template <class Block>
  static void run(Block& block, const RmsNorm& a, const TileCoord& t) {
    block.inputs();
    // The rows that the program's steps may have decide this, not those of this step: the cut of a prompt must change no bit.
    if (Kernel::kSeveralRows && a.x.size[0] > Kernel::kStreamRows && a.x.last() % 8 == 0 && in_words(a.x) &&
        in_words(a.y) && reinterpret_cast<u64>(a.weight.data) % 16 == 0)
      return run_rows(block, a, t);
    for (i32 row = t[0]; row < t[1]; ++row) prologue(block, a, row, block.row(a.y, row));
  }
};

}  // namespace rms_norm
