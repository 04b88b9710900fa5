// Tests the walks of tile/epilogue.cuh with ops that say what becomes of a value and nothing else.
#include <vector>

#include <gtest/gtest.h>

#include "heddle/backend/cpu/scalar_block.h"

namespace heddle {
namespace {

#include "heddle/tile/epilogue.cuh"

constexpr i32 kRows = 3, kColumns = 12;

Tensor tensor_of(std::vector<float>& values, i32 columns) {
  return {.data = reinterpret_cast<u8*>(values.data()),
          .buffer = 0,
          .rank = 2,
          .size = {kRows, columns},
          .stride = {columns, 1}};
}

struct Args {
  std::vector<float> in, other, out, kept;
  Tensor x, operand, y, copy;

  explicit Args(i32 columns_out = kColumns)
      : in(kRows * kColumns), other(in.size(), 0), out(size_t(kRows * columns_out), -1), kept(out) {
    for (size_t i = 0; i < in.size(); ++i) in[i] = float(i), other[i] = 100 * float(i % 7);
    x = tensor_of(in, kColumns), operand = tensor_of(other, kColumns);
    y = tensor_of(out, columns_out), copy = tensor_of(kept, columns_out);
  }
};

struct Tensors {
  static const Tensor& input(const Args& a) { return a.x; }
  static const Tensor& output(const Args& a) { return a.y; }
};

struct Plus : Tensors, Epilogue<Plus> {
  template <class Block>
  static auto operand(Block& block, const Args& a, i32 row) {
    return block.row(a.operand, row);
  }
  static float value(const Args&, float x, float operand) { return x + operand; }
  template <class Block, class Index>
  static void keep(Block& block, const Args& a, i32 row, i32 column, Index i, float y) {
    block.row(a.copy, row).from(column).store(i, y);
  }
};

struct Difference : Tensors, Epilogue<Difference> {
  static constexpr i32 kTakes = 2;
  template <class Pair>
  static float value(const Args&, Pair x) {
    return 10 * x.first - x.second;
  }
};

// Exchanges the first two of every four columns.
struct Swap : Tensors, Epilogue<Swap> {
  static constexpr i32 kTakes = 2, kGives = 2;
  template <class Pair>
  static Pair value(const Args&, Pair x) {
    return {x.second, x.first};
  }
  template <class F>
  static void each_span(const Args&, i32 begin, i32 end, F&& f) {
    for (i32 at = begin; at < end; at += 4) f(at, 0, 1);
  }
};

class EpilogueWalks : public testing::Test {
 protected:
  // Runs the op by itself on columns [first, last) of the input.
  template <class Op>
  void run(Args& a, i32 first, i32 last) {
    allow_accesses(a);
    Op::run(block_, a,
            TileCoord{{0, kRows, first * Op::kGives / Op::kTakes, last * Op::kGives / Op::kTakes}});
  }
  // Applies the op as an epilogue to a fragment that holds these columns, and copies the fragment's values to the
  // output.
  template <class Op>
  void transform(Args& a, i32 first, i32 last) {
    allow_accesses(a);
    auto fragment = block_.fragment(0, kRows, first, last - first);
    const auto value = [](std::vector<float>& of, i32 m, i32 n) -> float& {
      return of[size_t(m) * (of.size() / kRows) + size_t(n)];
    };
    for (i32 m = 0; m < kRows; ++m)
      for (i32 n = first; n < last; ++n) fragment.row(m).set(n - first, value(a.in, m, n));
    Op::epilogue(block_, a, fragment);
    for (i32 m = 0; m < kRows; ++m)
      for (i32 n = 0; n < fragment.cols; ++n) value(a.out, m, fragment.n0 + n) = fragment.row(m).get(n);
  }

 private:
  void allow_accesses(Args& a) {
    Region regions[4];
    std::byte* base[4];
    std::vector<float>* const all[] = {&a.in, &a.other, &a.out, &a.kept};
    for (u32 b = 0; b < 4; ++b) {
      regions[b] = {
          .buffer = b, .access = b < 2 ? Access::kRead : Access::kWrite, .run = i64(4 * all[b]->size())};
      base[b] = reinterpret_cast<std::byte*>(all[b]->data());
    }
    guard_.begin("epilogue", regions, base);
  }

  AccessGuard guard_;
  ScalarBlock block_{guard_};
};

TEST_F(EpilogueWalks, AddTheOperandInTheSameColumnsAndKeepTheSum) {
  Args alone, chained;
  run<Plus>(alone, 4, 10);
  transform<Plus>(chained, 4, 10);
  for (const Args* a : {&alone, &chained})
    for (i32 i = 0; i < kRows * kColumns; ++i) {
      const bool inside = i % kColumns >= 4 && i % kColumns < 10;
      const float sum = inside ? float(i) + 100 * float(i % 7) : -1;
      EXPECT_EQ(a->out[size_t(i)], sum) << i;
      EXPECT_EQ(a->kept[size_t(i)], sum) << i;
    }
}

TEST_F(EpilogueWalks, FoldPairsIntoHalfAsManyColumns) {
  Args alone(kColumns / 2), chained(kColumns / 2);
  run<Difference>(alone, 4, 12);
  transform<Difference>(chained, 4, 12);
  for (const Args* a : {&alone, &chained})
    for (i32 i = 0; i < kRows * kColumns / 2; ++i)
      EXPECT_EQ(a->out[size_t(i)], i % (kColumns / 2) < 2 ? -1 : float(9 * 2 * i - 1)) << i;
}

TEST_F(EpilogueWalks, LeaveColumnsOutsideSpansAlone) {
  Args alone, chained;
  run<Swap>(alone, 0, kColumns);
  transform<Swap>(chained, 0, kColumns);
  for (i32 i = 0; i < kRows * kColumns; ++i) {
    const i32 partner = i % 4 == 0 ? i + 1 : i % 4 == 1 ? i - 1 : i;
    EXPECT_EQ(alone.out[size_t(i)], float(i % 4 < 2 ? partner : -1)) << i;
    EXPECT_EQ(chained.out[size_t(i)], float(partner)) << i;
  }
}

}  // namespace
}  // namespace heddle
