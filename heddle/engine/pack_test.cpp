#include "heddle/engine/pack.h"

#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "heddle/base/float16.h"

namespace heddle {
namespace {

struct Shape {
  DType dtype;
  i32 rows, cols;
  i32 panel_rows, interleave, panel_cols;
  bool transposed;

  std::string text() const {
    return fmt::format("{} [{}, {}], panels of {} rows, {} side by side, slices of {}{}", name(dtype), rows,
                       cols, panel_rows, interleave, panel_cols, transposed ? ", transposed" : "");
  }
};

// Layouts of the CPU, of a GPU and others, with row and column counts that do and do not fill whole vectors.
std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (DType dtype : {DType::kBf16, DType::kF16, DType::kF32})
    for (auto [rows, panel_rows] : {std::pair{16, 16}, {13, 16}, {3, 16}, {2, 2}, {1, 2}, {6, 6}})
      for (auto [cols, panel_cols] : {std::pair{1, 0}, {8, 0}, {37, 0}, {600, 0}, {555, 24}, {600, 260}})
        for (i32 bytes : {2, 4, 8, 16})
          for (bool transposed : {false, true})
            all.push_back(
                {dtype, rows, cols, panel_rows, std::max(1, bytes / size_of(dtype)), panel_cols, transposed});
  return all;
}

// A matrix with one panel of rows, and its source.
class Packed {
 public:
  explicit Packed(const Shape& shape) : shape_(shape), size_(size_of(shape.dtype)) {
    weight_.data.dtype = shape.dtype;
    weight_.data.size[0] = shape.rows, weight_.data.size[1] = shape.cols;
    weight_.panel_rows = shape.panel_rows;
    weight_.interleave = shape.interleave;
    weight_.panel_cols = shape.panel_cols;
    source_.resize(size_t(shape.rows * shape.cols * size_));
    for (i32 r = 0; r < shape.rows; ++r)
      for (i32 k = 0; k < shape.cols; ++k) set(r, k, float(r * shape.cols + k + 1) / 64);
    // Slices lie in reverse order and apart, as their table says.
    for (i32 s = weight_.slices(); s-- > 0;) table_.push_back(u64(s * (weight_.panel_bytes() + 64)));
    memory_.resize(size_t(weight_.slices() * (weight_.panel_bytes() + 64)));
  }

  void set(i32 r, i32 k, float value) {
    const u16 half = shape_.dtype == DType::kBf16 ? float_to_bf16(value) : float_to_f16(value);
    const void* from = shape_.dtype == DType::kF32 ? static_cast<const void*>(&value) : &half;
    std::memcpy(at(r, k), from, size_t(size_));
  }

  std::optional<PackPlace> pack() {
    std::vector<PackRow> rows;
    for (i32 r = 0; r < shape_.rows; ++r) rows.push_back({at(r, 0), shape_.transposed ? shape_.rows : 1});
    return pack_panel(weight_, rows, memory_.data(), table_.data());
  }

  // The expected bytes, element by element, with nothing elsewhere.
  std::vector<std::byte> expected() {
    std::vector<std::byte> all(memory_.size());
    for (i32 r = 0; r < shape_.rows; ++r)
      for (i32 k = 0; k < shape_.cols; ++k) {
        const i64 place = weight_.place(r, k % weight_.slice_cols());
        std::memcpy(&all[size_t(i64(table_[size_t(k / weight_.slice_cols())]) + place * size_)], at(r, k),
                    size_t(size_));
      }
    return all;
  }
  const std::vector<std::byte>& memory() const { return memory_; }

 private:
  std::byte* at(i32 r, i32 k) {
    return &source_[size_t((shape_.transposed ? k * shape_.rows + r : r * shape_.cols + k) * size_)];
  }

  Shape shape_;
  i32 size_;
  Weight weight_;
  std::vector<std::byte> source_, memory_;
  std::vector<u64> table_;
};

TEST(Pack, EveryElementGoesToItsPlace) {
  for (const Shape& shape : shapes()) {
    Packed packed(shape);
    EXPECT_FALSE(packed.pack()) << shape.text();
    EXPECT_EQ(packed.memory(), packed.expected()) << shape.text();
  }
}

TEST(Pack, OneValueThatIsNotFiniteIsFoundWhereverItStands) {
  for (const Shape& shape : shapes()) {
    if (shape.cols > 40) continue;
    Packed packed(shape);
    for (const float value : {INFINITY, -INFINITY, NAN})
      for (i32 r = 0; r < shape.rows; ++r)
        for (i32 k = 0; k < shape.cols; ++k) {
          packed.set(r, k, value);
          const auto found = packed.pack();
          ASSERT_TRUE(found) << shape.text() << ": " << r << ", " << k;
          ASSERT_EQ(std::pair(found->row, found->col), std::pair(r, k)) << shape.text();
          packed.set(r, k, 1);
        }
    EXPECT_FALSE(packed.pack()) << shape.text();
  }
}

// The largest and the smallest numbers are finite, in every lane.
TEST(Pack, TakesAllThatIsFinite) {
  for (const Shape& shape : shapes()) {
    if (shape.cols != 37) continue;
    Packed packed(shape);
    const float largest = shape.dtype == DType::kF16 ? 65504 : 3.38e38f;
    for (i32 r = 0; r < shape.rows; ++r)
      for (i32 k = 0; k < shape.cols; ++k)
        packed.set(r, k, k % 3 == 0 ? largest : k % 3 == 1 ? -largest : 1e-40f);
    EXPECT_FALSE(packed.pack()) << shape.text();
    EXPECT_EQ(packed.memory(), packed.expected()) << shape.text();
  }
}

}  // namespace
}  // namespace heddle
