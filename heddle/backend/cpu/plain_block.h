// A block of one thread that needs nothing but the compiler: for a tile body that is compiled by itself, when heddle is
// built already. Sums go over sixteen partial sums, which compilers make lane vectors of; the order depends on the
// number of terms alone. It has the language without packed weights (tile/block.h).
#pragma once

#include <bit>
#include <cstring>

#include "heddle/backend/cpu/element.h"
#include "heddle/backend/cpu/loops.h"
#include "heddle/backend/cpu/scratch.h"
#include "heddle/base/float8.h"
#include "heddle/ir/access_hook.h"
#include "heddle/ir/product.h"
#include "heddle/ir/tensor.h"
#include "heddle/tile/block.h"

namespace heddle {

struct StepHost;
struct StepDevice;

// A dtype that the compiler knows: rows of it become lane vectors.
template <DType kType>
struct Known {
  constexpr operator DType() const { return kType; }
};
// A tensor whose dtype the compiler knows.
template <DType kType>
struct TensorOf : Tensor {};

template <bool kHooked>
class PlainBlock : public Loops {
 public:
  // One row in memory or on chip. Type: a DType, or Known.
  template <class Type>
  struct Row {
    struct Strided {
      Row view;
      i64 step;

      float load(Index i) const { return view.from(i.at * step).get(0); }
      void store(Index i, float value) const { view.from(i.at * step).set(0, value); }
    };

    u8* data;
    [[no_unique_address]] Type dtype;
    const AccessHook* hook;  // null: on chip, or nobody listens

    float load(Index i) const { return get(i.at); }
    void store(Index i, float value) const { set(i.at, value); }
    Pair load_pair(Index i) const { return {get(2 * i.at), get(2 * i.at + 1)}; }
    void store_pair(Index i, float first, float second) const {
      set(2 * i.at, first), set(2 * i.at + 1, second);
    }
    float load_rounded(Index i, DType as) const {
      u8 rounded[4];
      set_element(as, rounded, get(i.at));
      return get_element(as, rounded);
    }
    float load_bit(Index i) const { return float(u32(get_int(i.at / 32)) >> (i.at % 32) & 1); }
    float get(i32 j) const {
      const u8* const at = data + i64(j) * size_of(dtype);
      touch(at, size_of(dtype), false);
      return get_element(dtype, at);
    }
    void set(i32 j, float value) const {
      u8* const at = data + i64(j) * size_of(dtype);
      touch(at, size_of(dtype), true);
      set_element(dtype, at, value);
    }
    i32 get_int(i32 j) const {
      touch(data + i64(j) * 4, 4, false);
      i32 value;
      std::memcpy(&value, data + i64(j) * 4, 4);
      return value;
    }
    void set_int(i32 j, i32 value) const {
      touch(data + i64(j) * 4, 4, true);
      std::memcpy(data + i64(j) * 4, &value, 4);
    }
    void set_byte(i32 j, i32 value) const {
      touch(data + j, 1, true);
      data[j] = u8(value);
    }
    Row from(i64 j) const { return {data + j * size_of(dtype), dtype, hook}; }
    Strided every(i64 n) const { return {*this, n}; }

   private:
    void touch(const u8* at, i64 bytes, bool writes) const {
      if constexpr (kHooked)
        if (hook) hook->touch(hook->context, at, bytes, writes);
    }
  };

  using View = Row<DType>;
  using Chip = Row<Known<DType::kF32>>;

  struct Plane {
    float* data;
    i64 stride;
    i32 rows = 0, cols = 0, m0 = 0, n0 = 0;
    Scratch::Mark mark{};

    Chip row(i32 m) const { return {reinterpret_cast<u8*>(data + m * stride), {}, nullptr}; }
  };
  using Fragment = Plane;

  struct Product {
    Plane left, right;
    i32 k;
    DType dtype;

    Chip left_row(i32 m) const { return left.row(m); }
  };

  // Called before each tile.
  void begin(const AccessHook* hook = nullptr) { scratch_.reset(), hook_ = hook; }

  void inputs() {}
  void sync() {}
  void dead() {}
  i32 rows(const TileCoord& tile) const { return tile[1] - tile[0]; }

  View row(const Tensor& tensor, auto... indices) { return row_of(tensor, tensor.dtype, indices...); }
  template <DType kType>
  Row<Known<kType>> row(const TensorOf<kType>& tensor, auto... indices) {
    return row_of(tensor, Known<kType>(), indices...);
  }
  const i32* ints(const Tensor& tensor) { return reinterpret_cast<const i32*>(tensor.data); }
  const StepHost& host(const Tensor& tensor) { return *reinterpret_cast<const StepHost*>(tensor.data); }
  const StepDevice& device(const Tensor& tensor) { return *reinterpret_cast<const StepDevice*>(tensor.data); }

  template <class Op, class F>
  float reduce(i32 n, Op op, F&& f) {
    constexpr i32 kParts = 16;
    float part[kParts];
    for (float& value : part) value = identity(op);
    i32 i = 0;
    for (; i + kParts <= n; i += kParts)
      for (i32 p = 0; p < kParts; ++p) part[p] = combine(op, part[p], f(Index{i + p}));
    for (i32 p = 0; i < n; ++i, ++p) part[p] = combine(op, part[p], f(Index{i}));
    for (i32 half = kParts / 2; half > 0; half /= 2)
      for (i32 p = 0; p < half; ++p) part[p] = combine(op, part[p], part[p + half]);
    return part[0];
  }
  template <class Out, class Op, class F>
  void reduce_rows(Out out, i32 count, i32 n, Op op, F&& f) {
    for (i32 j = 0; j < count; ++j) out.set(j, reduce(n, op, [&](Index i) { return f(j, i); }));
  }
  template <class F>
  Best argmax(i32 n, F&& f) {
    Best best{identity(Max()), 0};
    for (i32 i = 0; i < n; ++i)
      if (const float value = f(Index{i}); is_better(value, best.value)) best = {value, i};
    return best;
  }
  template <class Values>
  Best argmax(Values row, i32 n) {
    return argmax(n, [&](auto i) { return row.load(i); });
  }

  Chip scratch(i32 n) { return {static_cast<u8*>(scratch_.take(size_t(n) * 4)), {}, nullptr}; }
  Fragment fragment(i32 m0, i32 rows, i32 n0, i32 cols) { return plane(rows, cols, m0, n0); }
  void release(const Fragment& fragment) { scratch_.reset(fragment.mark); }

  // The right matrix keeps what its dtype would.
  Product product(i32 m, i32 n, i32 k, DType dtype) {
    const Product made{plane(m, k, 0, 0), plane(n, k, 0, 0), k, dtype};
    std::memset(made.right.data, 0, size_t(n) * size_t(k) * 4);
    return made;
  }
  template <class Values>
  void set_right_rows(const Product& product, i32 s, i32 at, const Lines<Values>& lines) {
    map_rows(lines.count, lines.size, [&](i32 j, Index i) {
      product.right.row(s + j).set(at + i.at, rounded(product.dtype, lines[j].load(i)));
    });
  }
  template <class Values>
  void set_right_columns(const Product& product, i32 s, const Lines<Values>& lines) {
    map_rows(lines.count, lines.size, [&](i32 j, Index i) {
      product.right.row(i.at).set(s + j, rounded(product.dtype, lines[j].load(i)));
    });
  }
  void mma(Fragment& fragment, const Product& product) {
    for (i32 m = 0; m < fragment.rows; ++m)
      for (i32 n = 0; n < fragment.cols; ++n) {
        const Chip left = product.left.row(m), right = product.right.row(n);
        fragment.row(m).set(n,
                            reduce(product.k, Sum(), [&](Index i) { return left.load(i) * right.load(i); }));
      }
  }

  void mma(Fragment& fragment, const Matrix& a, const Matrix& b) {
    const DType type = product_dtype(a, b);
    const i32 depth = a.cols();
    const Plane left = plane(fragment.rows, depth, 0, 0), right = plane(1, depth, 0, 0);
    for (i32 m = 0; m < fragment.rows; ++m)
      for (i32 k = 0; k < depth; ++k) left.row(m).set(k, rounded(type, element(a, fragment.m0 + m, k)));
    for (i32 n = 0; n < fragment.cols; ++n) {
      for (i32 k = 0; k < depth; ++k) right.row(0).set(k, rounded(type, element(b, k, fragment.n0 + n)));
      for (i32 m = 0; m < fragment.rows; ++m)
        fragment.row(m).set(
            n, reduce(depth, Sum(), [&](Index i) { return left.row(m).load(i) * right.row(0).load(i); }));
    }
    scratch_.reset(left.mark);
  }

 private:
  // An element of a matrix as it lies in memory.
  float element(const Matrix& matrix, i32 row, i32 col) const {
    const i32 r = matrix.transposed ? col : row, c = matrix.transposed ? row : col;
    const Tensor& data = matrix.data;
    const i64 at = r * data.stride[0] + c;
    const u8* const from = data.data + at * bits_of(data.dtype) / 8;
    listen(from, (bits_of(data.dtype) + 7) / 8);
    const float code = code_at(data.dtype, from, at % 2 != 0);
    const auto part = [&](const Tensor& values, float otherwise) {
      if (!values.exists()) return otherwise;
      const u8* const value = values.data + Matrix::place_of(values, data.size[1], r, c) * 4;
      listen(value, 4);
      return get_element(DType::kF32, value);
    };
    return (code - part(matrix.zeros, 0)) * part(matrix.scales, 1);
  }
  static float code_at(DType dtype, const u8* from, bool is_high) {
    switch (dtype) {
      case DType::kF8E4M3:
        return f8e4m3_to_float(*from);
      case DType::kF8E5M2:
        return f8e5m2_to_float(*from);
      case DType::kI8:
        return float(std::bit_cast<signed char>(*from));
      case DType::kI4:
        return float(std::bit_cast<signed char>(u8(is_high ? *from & 0xf0 : *from << 4))) / 16;
      default:
        return get_element(dtype, from);
    }
  }
  void listen(const u8* at, i64 bytes) const {
    if constexpr (kHooked)
      if (hook_) hook_->touch(hook_->context, at, bytes, false);
  }
  template <class Type>
  Row<Type> row_of(const Tensor& tensor, Type dtype, auto... indices) {
    i64 at = 0;
    int d = 0;
    ((at += i64(indices) * tensor.stride[d++]), ...);
    return {tensor.data + at * size_of(dtype), dtype, hook_};
  }
  static float identity(Sum) { return 0; }
  static float identity(Max) { return -__builtin_inff(); }
  static float identity(Min) { return __builtin_inff(); }
  static float combine(Sum, float a, float b) { return a + b; }
  static float combine(Max, float a, float b) { return is_better(b, a) ? b : a; }
  static float combine(Min, float a, float b) { return is_better(-b, -a) ? b : a; }
  static float rounded(DType dtype, float value) {
    u8 bytes[4];
    set_element(dtype, bytes, value);
    return get_element(dtype, bytes);
  }
  Plane plane(i32 rows, i32 cols, i32 m0, i32 n0) {
    const Scratch::Mark mark = scratch_.mark();
    auto* const data = static_cast<float*>(scratch_.take(size_t(rows) * size_t(cols) * 4));
    return {data, cols, rows, cols, m0, n0, mark};
  }

  const AccessHook* hook_ = nullptr;
  Scratch scratch_;
};

}  // namespace heddle
