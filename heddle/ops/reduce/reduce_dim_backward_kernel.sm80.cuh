// dx of a sum or a mean: each word of it from dy alone. dx is dense.
namespace reduce_dim_backward {

struct KernelConfig {
  static constexpr u32 kThreads = 256;
  static constexpr i32 kWords = 4, kKind = kReduceSum;
};

template <class Config>
struct Kernel {
  static constexpr u32 kThreads = Config::kThreads;
  static constexpr i32 kWords = Config::kWords;
  static constexpr DType kIn = Config::types().dy.dtype, kOut = Config::types().dx.dtype;

  static void run(const ReduceDimBackward& a, const TensorMap*, u8*) {
    const i32 columns = a.dx.size[2];
    const i64 line = i64(a.dx.size[1]) * columns, total = a.dx.size[0] * line;
    const i64 first = i64(blockIdx.x) * kThreads * kWords * 8;
    const i64 first_line = first / line, in_line = first % line;
    const i32 first_column = i32(in_line % columns);
    const float scale = Config::kKind == kReduceMean ? 1.0f / float(a.dx.size[1]) : 1.0f;
    const bool in_words = columns % 8 == 0 && a.dy.stride[0] % 8 == 0;
#pragma unroll
    for (i32 n = 0; n < kWords; ++n) {
      const u32 on = (threadIdx.x + u32(n) * kThreads) * 8;
      if (first + on >= total) return;
      Place place{first_line, in_line + on, i32((u32(first_column) + on) % u32(columns))};
      place.go_on(line);
      float values[8];
      if (in_words) {
        Eight<kIn> word;
        word.load_kept(a.dy.data + place.line * a.dy.stride[0] * size_of(kIn), place.column / 8);
#pragma unroll
        for (i32 i = 0; i < 8; ++i) values[i] = word.get(i) * scale;
      } else {
        read(a.dy, place, line, columns, values);
#pragma unroll
        for (float& value : values) value *= scale;
      }
      write(a.dx.data, first + on, total, values);
    }
  }

 private:
  struct Place {
    i64 line, inside;  // a line has M * D elements
    i32 column;

    // Takes it to a later line where it is past its own.
    void go_on(i64 length) {
      constexpr i64 kShort = 1 << 30;
      if (inside < length) return;
      const i64 lines = length < kShort ? u32(inside) / u32(length) : 1;
      line += lines, inside -= lines * length;
    }
  };

  static void read(const Tensor& dy, Place place, i64 length, i32 columns, float (&values)[8]) {
#pragma unroll
    for (i32 i = 0; i < 8; ++i) {
      const bool is_there = place.line < dy.size[0];
      values[i] = is_there ? load_element(kIn, dy.data, place.line * dy.stride[0] + place.column) : 0.0f;
      if (++place.column == columns) place.column = 0;
      if (++place.inside == length) ++place.line, place.inside = 0;
    }
  }

  static void write(u8* dx, i64 at, i64 total, const float (&values)[8]) {
    if (at + 8 <= total) return Eight<kOut>::of([&](i32 i) { return values[i]; }).store(dx, at / 8);
#pragma unroll
    for (i32 i = 0; i < 8; ++i)
      if (at + i < total) store_element(kOut, dx, at + i, values[i]);
  }
};

}  // namespace reduce_dim_backward
