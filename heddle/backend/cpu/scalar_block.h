// The block of the reference executor. It computes one value at a time and compares every access with what the tile
// declared. It is slow and strict: the second opinion on every other block.
#pragma once

#include <bit>
#include <vector>

#include "heddle/backend/cpu/bodies.h"
#include "heddle/backend/cpu/loops.h"
#include "heddle/backend/cpu/scratch.h"
#include "heddle/base/float16.h"
#include "heddle/ir/access_hook.h"
#include "heddle/ir/rules.h"
#include "heddle/ir/step.h"
#include "heddle/tile/block.h"

namespace heddle {

// The bytes that a tile declared, as addresses, and the bytes that it stored.
class AccessGuard {
 public:
  // Starts a tile: `what` names it in messages, `base` gives each buffer's address.
  void begin(std::string what, std::span<const Region> regions, std::span<std::byte* const> base);
  void load(const void* address, i64 bytes) { expect(address, bytes, Access::kRead); }
  void store(void* address, i64 bytes);
  // Calls load() or store(), for as long as the guard lives.
  AccessHook hook();
  // Notes all bytes that the tile may store as stored, for a body that stores without the guard.
  void store_declared();

  // A range of bytes stored since begin(), in the order of the stores. A store that begins where the one before ended
  // extends its run.
  struct Run {
    std::byte* begin;
    std::byte* end;
  };
  std::span<const Run> stores() const { return stores_; }

 private:
  struct Window {
    Region region;
    std::byte* base;
  };
  bool contains(const Window& window, const std::byte* address, i64 bytes) const;
  void expect(const void* address, i64 bytes, Access access);

  std::string what_;
  std::vector<Window> windows_;
  size_t last_[2] = {0, 0};
  std::vector<Run> stores_;
};

class ScalarBlock : public Loops {
 public:
  struct Strided;

  // One row in memory or on chip.
  struct View {
    u8* data;
    DType dtype;
    AccessGuard* guard;  // null: on chip

    float load(Index i) const { return get(i.at); }
    void store(Index i, float value) { set(i.at, value); }
    Pair load_pair(Index i) const { return {get(2 * i.at), get(2 * i.at + 1)}; }
    void store_pair(Index i, float first, float second) { set(2 * i.at, first), set(2 * i.at + 1, second); }
    float load_rounded(Index i, DType as) const { return round_to(as, get(i.at)); }
    float load_bit(Index i) const { return float(u32(get_int(i.at / 32)) >> (i.at % 32) & 1); }
    float get(i32 j) const;
    void set(i32 j, float value);
    i32 get_int(i32 j) const;
    void set_int(i32 j, i32 value);
    void set_byte(i32 j, i32 value);
    View from(i64 j) const { return {data + j * size_of(dtype), dtype, guard}; }
    Strided every(i64 n) const { return {*this, n}; }
  };

  struct Strided {
    View view;
    i64 step;

    float load(Index i) const { return view.from(i.at * step).get(0); }
    void store(Index i, float value) { view.from(i.at * step).set(0, value); }
  };

  struct WeightRow {
    const Weight& weight;
    i32 row;

    float load(Index i) const;
  };

  struct Plane {
    float* data;
    i64 stride;
    i32 rows = 0, cols = 0, m0 = 0, n0 = 0;
    Scratch::Mark mark{};

    View row(i32 m) const { return {reinterpret_cast<u8*>(data + m * stride), DType::kF32, nullptr}; }
  };
  using Operand = Plane;
  using Fragment = Plane;

  struct Product {
    Plane left;
    View right;  // all elements, row after row
    i32 k;

    View left_row(i32 m) const { return left.row(m); }
    View right_row(i32 n) const { return right.from(i64(n) * k); }
  };

  explicit ScalarBlock(AccessGuard& guard) : guard_(&guard) {}

  // Called before each tile.
  void begin() { scratch_.reset(), dead_ = false; }
  bool was_dead() const { return dead_; }

  void inputs() {}
  void sync() {}
  i32 rows(const TileCoord& tile) const { return tile[1] - tile[0]; }
  void dead() { dead_ = true; }

  View row(const Tensor& tensor, auto... indices) {
    i64 at = 0;
    int d = 0;
    ((at += i64(indices) * tensor.stride[d++]), ...);
    return {tensor.data + at * size_of(tensor.dtype), tensor.dtype, guard_};
  }

  WeightRow weight_row(const Weight& weight, i32 row) { return {weight, row}; }

  template <class F>
  float reduce(i32 n, Sum, F&& f) {
    float sum = 0;
    for (i32 i = 0; i < n; ++i) sum += f(Index{i});
    return sum;
  }
  template <class F>
  float reduce(i32 n, Max, F&& f) {
    float best = -__builtin_inff();
    for (i32 i = 0; i < n; ++i)
      if (const float value = f(Index{i}); is_better(value, best)) best = value;
    return best;
  }
  template <class F>
  float reduce(i32 n, Min, F&& f) {
    float best = __builtin_inff();
    for (i32 i = 0; i < n; ++i)
      if (const float value = f(Index{i}); is_better(-value, -best)) best = value;
    return best;
  }
  template <class Op, class F>
  void reduce_rows(View out, i32 count, i32 n, Op op, F&& f) {
    for (i32 j = 0; j < count; ++j) out.set(j, reduce(n, op, [&](Index i) { return f(j, i); }));
  }
  template <class F>
  Best argmax(i32 n, F&& f) {
    Best best{-__builtin_inff(), 0};
    for (i32 i = 0; i < n; ++i)
      if (float value = f(Index{i}); is_better(value, best.value)) best = {value, i};
    return best;
  }
  Best argmax(View row, i32 n) {
    return argmax(n, [&](auto i) { return row.load(i); });
  }

  View scratch(i32 n) { return {static_cast<u8*>(scratch_.take(size_t(n) * 4)), DType::kF32, nullptr}; }
  Operand operand(i32 rows, i32 cols, DType) { return matrix(rows, cols, 0, 0); }
  Operand operand(const Tensor& tensor, i32 m0, i32 rows, DType dtype) {
    Operand x = operand(rows, tensor.last(), dtype);
    map_rows(rows, tensor.last(), [&](i32 m, Index i) { x.row(m).store(i, row(tensor, m0 + m).load(i)); });
    return x;
  }
  Operand operand(i32 rows, i32 cols, const Weight& w) { return operand(rows, cols, w.data.dtype); }
  Operand operand(const Tensor& tensor, i32 m0, i32 rows, const Weight& w) {
    return operand(tensor, m0, rows, w.data.dtype);
  }
  Fragment fragment(i32 m0, i32 rows, i32 n0, i32 cols) { return matrix(rows, cols, m0, n0); }
  void release(const Fragment& fragment) { scratch_.reset(fragment.mark); }
  void mma(Fragment& fragment, const Operand& x, const Weight& w);
  void mma(Fragment& fragment, const heddle::Matrix& a, const heddle::Matrix& b);
  Product product(i32 m, i32 n, i32 k, DType dtype);
  void set_right_rows(const Product& product, i32 s, i32 at, const Lines<View>& lines) {
    map_rows(lines.count, lines.size,
             [&](i32 j, Index i) { product.right_row(s + j).set(at + i.at, lines[j].load(i)); });
  }
  void set_right_columns(const Product& product, i32 s, const Lines<View>& lines) {
    map_rows(lines.count, lines.size,
             [&](i32 j, Index i) { product.right_row(i.at).set(s + j, lines[j].load(i)); });
  }
  // Sizes are those of a GPU's chip.
  template <class Sizes>
  void mma(Fragment& fragment, const Operand& x, const Weight& w, Sizes) {
    mma(fragment, x, w);
  }
  void mma(Fragment& fragment, const Operand& x, const Weight& w, i32 matrix) {
    mma(fragment, x, w.matrix(matrix));
  }
  void mma(Fragment& fragment, const Product& product);

  void panels(const Weight&, i32, i32) {}
  const StepHost& host(const Tensor& tensor) { return *reinterpret_cast<const StepHost*>(tensor.data); }
  const StepDevice& device(const Tensor& tensor) { return *reinterpret_cast<const StepDevice*>(tensor.data); }
  const i32* ints(const Tensor& tensor) { return reinterpret_cast<const i32*>(tensor.data); }

 private:
  float element(const heddle::Matrix& matrix, i32 row, i32 col);
  Plane matrix(i32 rows, i32 cols, i32 m0, i32 n0) {
    Scratch::Mark mark = scratch_.mark();
    return {
        static_cast<float*>(scratch_.take(size_t(rows) * size_t(cols) * 4)), cols, rows, cols, m0, n0, mark};
  }

  AccessGuard* guard_;
  Scratch scratch_;
  bool dead_ = false;
  std::vector<float> rows_,
      line_;  // the operands of a product: all rows of the left, one column of the right
};

std::span<const BodyEntry<ScalarBlock>> scalar_bodies();

}  // namespace heddle
