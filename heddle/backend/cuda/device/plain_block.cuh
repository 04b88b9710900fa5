// A block for the device compiler: one CTA, one value a thread, everything the Block language offers in its
// plainest form. It exists so that every tile body is compiled for the GPU in CI; nothing launches it.
#pragma once

#include "heddle/ir/step.h"
#include "heddle/ir/tensor.h"
#include "heddle/tile/block.h"

namespace heddle::device {

// The primitives of tile/math.cuh.
inline float fma(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
inline float max(float a, float b) {
  return fmaxf(a, b);
}
inline float min(float a, float b) {
  return fminf(a, b);
}
inline float abs(float a) {
  return fabsf(a);
}
inline float round(float a) {
  return rintf(a);
}
inline float floor(float a) {
  return floorf(a);
}
inline float sqrt(float a) {
  return __fsqrt_rn(a);
}
inline float exp2i(float n) {
  return __int_as_float((i32(n) + 127) << 23);
}
inline float where_less(float a, float b, float x, float y) {
  return a < b ? x : y;
}

inline float combine(Sum, float a, float b) {
  return a + b;
}
inline float combine(Max, float a, float b) {
  return a > b ? a : b;
}
inline float combine(Min, float a, float b) {
  return a < b ? a : b;
}
inline float identity(Sum) {
  return 0;
}
inline float identity(Max) {
  return -__int_as_float(0x7f800000);
}
inline float identity(Min) {
  return __int_as_float(0x7f800000);
}

inline float load_as(DType dtype, const u8* data, i64 j) {
  float value = 0;
  switch (dtype) {
    case DType::kF32:
      return reinterpret_cast<const float*>(data)[j];
    case DType::kI32:
      return __int_as_float(reinterpret_cast<const i32*>(data)[j]);
    case DType::kU8:
      return float(data[j]);
    case DType::kBf16:
      return __uint_as_float(u32(reinterpret_cast<const u16*>(data)[j]) << 16);
    case DType::kF16:
      asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(reinterpret_cast<const u16*>(data)[j]));
  }
  return value;
}

inline void store_as(DType dtype, u8* data, i64 j, float value) {
  u16 bits = 0;
  switch (dtype) {
    case DType::kF32:
      reinterpret_cast<float*>(data)[j] = value;
      return;
    case DType::kI32:
      reinterpret_cast<i32*>(data)[j] = __float_as_int(value);
      return;
    case DType::kU8:
      data[j] = u8(value);
      return;
    case DType::kBf16:
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
      break;
    case DType::kF16:
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
      break;
  }
  reinterpret_cast<u16*>(data)[j] = bits;
}

struct Index {
  i32 at;
  friend Index operator+(Index i, i32 n) { return {i.at + n}; }
};

struct Pair {
  float first, second;
};

inline float round_to(DType dtype, float value) {
  u8 bytes[4];
  store_as(dtype, bytes, 0, value);
  return load_as(dtype, bytes, 0);
}

struct Strided;

struct View {
  u8* data;
  DType dtype;

  float load(Index i) const { return get(i.at); }
  void store(Index i, float value) { set(i.at, value); }
  Pair load_pair(Index i) const { return {get(2 * i.at), get(2 * i.at + 1)}; }
  void store_pair(Index i, float first, float second) { set(2 * i.at, first), set(2 * i.at + 1, second); }
  float get(i32 j) const { return load_as(dtype, data, j); }
  void set(i32 j, float value) { store_as(dtype, data, j, value); }
  i32 get_int(i32 j) const { return reinterpret_cast<const i32*>(data)[j]; }
  void set_int(i32 j, i32 value) { reinterpret_cast<i32*>(data)[j] = value; }
  float load_rounded(Index i, DType as) const { return round_to(as, get(i.at)); }
  float load_bit(Index i) const { return float(u32(get_int(i.at / 32)) >> (i.at % 32) & 1); }
  View from(i64 j) const { return {data + j * size_of(dtype), dtype}; }
  Strided every(i64 n) const;
};

struct Strided {
  View view;
  i64 step;

  float load(Index i) const { return view.from(i.at * step).get(0); }
  void store(Index i, float value) { view.from(i.at * step).set(0, value); }
};

inline Strided View::every(i64 n) const {
  return {*this, n};
}

struct WeightRow {
  const Weight& w;
  i32 row;

  float load(Index i) const {
    const i32 panel = row / w.panel_rows * w.slices() + i.at / w.slice_cols();
    return load_as(w.data.dtype, w.data.data + w.table[panel],
                   w.place(row % w.panel_rows, i.at % w.slice_cols()));
  }
};

struct Matrix {
  u8* data;
  DType dtype;
  i32 rows, cols, m0, n0;

  View row(i32 m) const { return {data + i64(m) * cols * size_of(dtype), dtype}; }
};

struct Product {
  Matrix left, right;

  View left_row(i32 m) const { return left.row(m); }
  View right_row(i32 n) const { return right.row(n); }
  Strided right_column(i32 k) const { return right.row(0).from(k).every(right.cols); }
};

extern __shared__ u8 arena[];

class Block {
 public:
  using View = device::View;
  using Operand = Matrix;
  using Fragment = Matrix;

  void inputs() { __syncthreads(); }
  void sync() { __syncthreads(); }
  void dead() {}
  void item(const Weight&, i32) {}
  void release(const Fragment&) {}

  View row(const Tensor& tensor, auto... indices) {
    i64 at = 0;
    int d = 0;
    ((at += i64(indices) * tensor.stride[d++]), ...);
    return {tensor.data + at * size_of(tensor.dtype), tensor.dtype};
  }

  WeightRow weight_row(const Weight& weight, i32 row) { return {weight, row}; }

  template <class F>
  void map(i32 n, F&& f) {
    for (i32 i = i32(threadIdx.x); i < n; i += i32(blockDim.x)) f(Index{i});
  }
  template <class Make, class Use>
  void map(i32 n, Make&& make, Use&& use) {
    map(n, [&](Index i) { use(i, make(i)); });
  }
  template <class F>
  void map_rows(i32 count, i32 n, F&& f) {
    for (i32 j = 0; j < count; ++j) map(n, [&](Index i) { f(j, i); });
  }
  template <class Op, class F>
  float reduce(i32 n, Op op, F&& f) {
    float mine = identity(op);
    map(n, [&](Index i) { mine = combine(op, mine, f(i)); });
    for (int step = 16; step > 0; step /= 2) mine = combine(op, mine, __shfl_xor_sync(~0u, mine, step));
    __shared__ float warps[32];
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
    __syncthreads();
    float all = warps[0];
    for (u32 w = 1; w < blockDim.x / 32; ++w) all = combine(op, all, warps[w]);
    __syncthreads();
    return all;
  }
  template <class Op, class F>
  void reduce_rows(View out, i32 count, i32 n, Op op, F&& f) {
    for (i32 j = 0; j < count; ++j) out.set(j, reduce(n, op, [&](Index i) { return f(j, i); }));
  }
  template <class F>
  Best argmax(i32 n, F&& f) {
    const float value = reduce(n, Max(), f);
    const float first = reduce(n, Min(), [&](Index i) { return f(i) == value ? float(i.at) : float(n); });
    return {value, int(first)};
  }
  float index(Index i) const { return float(i.at); }

  View scratch(i32 n) { return {take(i64(n) * 4), DType::kF32}; }
  Operand operand(i32 rows, i32 cols, DType dtype) {
    return {take(i64(rows) * cols * size_of(dtype)), dtype, rows, cols, 0, 0};
  }
  Operand operand(const Tensor& tensor, i32 m0, i32 rows, DType dtype) {
    Operand x = operand(rows, tensor.last(), dtype);
    map_rows(rows, tensor.last(), [&](i32 m, Index i) { x.row(m).store(i, row(tensor, m0 + m).load(i)); });
    return x;
  }
  Fragment fragment(i32 m0, i32 rows, i32 n0, i32 cols) {
    return {take(i64(rows) * cols * 4), DType::kF32, rows, cols, m0, n0};
  }
  void mma(Fragment& fragment, const Operand& x, const Weight& w) {
    map(fragment.rows * fragment.cols, [&](Index i) {
      const i32 m = i.at / fragment.cols, n = fragment.n0 + i.at % fragment.cols;
      float sum = 0;
      for (i32 k = 0; k < w.cols(); ++k) sum = fma(x.row(m).get(k), weight_row(w, n).load(Index{k}), sum);
      fragment.row(m).set(i.at % fragment.cols, sum);
    });
  }

  Product product(i32 m, i32 n, i32 k, DType dtype) {
    const Product made{operand(m, k, DType::kF32), operand(n, k, dtype)};
    map(n * k, [&](Index i) { made.right_row(0).set(i.at, 0); });
    return made;
  }
  void mma(Fragment& fragment, const Product& product) {
    map(fragment.rows * fragment.cols, [&](Index i) {
      const i32 m = i.at / fragment.cols, n = i.at % fragment.cols;
      float sum = 0;
      for (i32 k = 0; k < product.left.cols; ++k)
        sum = fma(product.left_row(m).get(k), product.right_row(n).get(k), sum);
      fragment.row(m).set(n, sum);
    });
  }

  const StepHost& host(const Tensor& tensor) { return *reinterpret_cast<const StepHost*>(tensor.data); }
  const StepDevice& device(const Tensor& tensor) { return *reinterpret_cast<const StepDevice*>(tensor.data); }

 private:
  u8* take(i64 bytes) {
    u8* result = arena + used_;
    used_ += (bytes + 15) / 16 * 16;
    return result;
  }
  i64 used_ = 0;
};

}  // namespace heddle::device
