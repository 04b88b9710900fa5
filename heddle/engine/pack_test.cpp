#include "heddle/engine/pack.h"

#include <cmath>
#include <cstring>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "heddle/base/element.h"
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

// A coded matrix with one panel of rows, and its source.
struct CodedPanel {
  Weight weight;
  std::vector<std::byte> codes, panel;
  std::vector<float> scales;
  i64 row_bytes = 0;

  CodedPanel(Code code, i32 rows, i32 cols, i32 panel_rows, i32 interleave, u16 group) {
    weight.data.dtype = DType::kBf16;
    weight.data.size[0] = rows, weight.data.size[1] = cols;
    weight.panel_rows = panel_rows, weight.interleave = interleave;
    weight.coding = {code, group};
    row_bytes = bytes_of(info_of(code).element, cols);
    codes.resize(size_t(rows * row_bytes));
    for (i32 r = 0; r < rows; ++r)
      for (i32 k = 0; k < cols; ++k) set(r, k, (r * 5 + k * 3) % 15 - 7);
    for (i32 i = 0; i < rows * weight.groups(); ++i) scales.push_back(float(i + 1) / 8);
    panel.resize(size_t(weight.panel_bytes()));
  }
  void set(i32 r, i32 k, double value) {
    store_number(info_of(weight.coding.code).element, &codes[size_t(r * row_bytes)], k, value);
  }
  std::optional<PackPlace> pack() {
    std::vector<PackRow> rows;
    for (i32 r = 0; r < weight.rows(); ++r)
      rows.push_back({&codes[size_t(r * row_bytes)], 1, &scales[size_t(r * weight.groups())]});
    const u64 table = 0;
    return pack_panel(weight, rows, panel.data(), &table);
  }
};

TEST(PackCodes, CodesAndScalesGoToTheirPlaces) {
  for (const Code code : {Code::kF8E4M3, Code::kI4})
    for (auto [rows, panel_rows, interleave] :
         {std::tuple{16, 16, 2}, {5, 16, 2}, {2, 2, 8}, {1, 2, 8}, {4, 4, 4}, {2, 2, 16}, {1, 2, 32}})
      for (const i32 cols : {2, 37, 256, 300, 8704, 33000})
        for (const u16 group : {0, 3, 32, 128, 512}) {
          if (cols > 1000 && panel_rows != 2) continue;
          CodedPanel packed(code, rows, cols, panel_rows, interleave, group);
          if (cols % 2 != 0 && code == Code::kI4) continue;  // a row has whole bytes
          ASSERT_TRUE(packed.weight.holds_coding());
          ASSERT_FALSE(packed.pack());
          const DType element = info_of(code).element;
          for (i32 r = 0; r < rows; ++r)
            for (i32 k = 0; k < cols; ++k) {
              ASSERT_EQ(load_number(element, packed.panel.data(), packed.weight.place(r, k)),
                        (r * 5 + k * 3) % 15 - 7)
                  << name(code) << " " << r << " " << k;
              float scale;
              std::memcpy(&scale, &packed.panel[size_t(packed.weight.scale_place(r, k))], sizeof scale);
              const i32 width = group == 0 ? cols : group;
              const i32 number = r * packed.weight.groups() + k / width + 1;
              ASSERT_EQ(scale, float(number) / 8);
            }
        }
}

TEST(PackCodes, WhatIsNoNumberIsFound) {
  CodedPanel packed(Code::kF8E4M3, 5, 70, 16, 2, 32);
  packed.set(3, 41, NAN);
  auto bad = packed.pack();
  ASSERT_TRUE(bad);
  EXPECT_EQ(std::pair(bad->row, bad->col), std::pair(3, 41));
  packed.set(3, 41, 0);
  for (const float scale : {NAN, INFINITY, -INFINITY}) {
    packed.scales[2 * 3 + 1] = scale;
    bad = packed.pack();
    ASSERT_TRUE(bad);
    EXPECT_EQ(std::pair(bad->row, bad->col), std::pair(2, 32)) << scale;
  }
  // The largest finite values are taken, and the first one beyond is not.
  packed.scales[7] = 0x1.fep127f / 8;
  EXPECT_FALSE(packed.pack());
  packed.set(2, 40, 16);
  bad = packed.pack();
  ASSERT_TRUE(bad);
  EXPECT_EQ(std::pair(bad->row, bad->col), std::pair(2, 40));
}

}  // namespace
}  // namespace heddle
