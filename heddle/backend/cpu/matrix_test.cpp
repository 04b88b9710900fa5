// Matrix kernels of every SIMD level against sums in fp64, with weights that end where memory ends.
#include "heddle/backend/cpu/arch/matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <random>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heddle/backend/cpu/element.h"
#include "heddle/backend/cpu/simd.h"
#include "heddle/backend/cpu/weight_element.h"
#include "heddle/base/element.h"

namespace heddle {
namespace {

// Memory whose last byte is followed by a page that may not be touched.
class GuardedMemory {
 public:
  explicit GuardedMemory(size_t bytes) {
    const auto page = size_t(sysconf(_SC_PAGESIZE));
    size_ = (bytes + page - 1) / page * page + page;
    base_ =
        static_cast<u8*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(base_ + size_ - page, page, PROT_NONE), 0);
    data = base_ + size_ - page - bytes;
  }
  ~GuardedMemory() { munmap(base_, size_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  u8* data;

 private:
  u8* base_;
  size_t size_;
};

struct Shape {
  i32 rows, n, k;
};

// x in f32 or bf16, w in `dtype`, all values in [-1, 1]; largest error relative to the sum of magnitudes.
double error_of(MatrixKernel kernel, DType x_dtype, DType dtype, const Shape& shape) {
  const auto [rows, n, k] = shape;
  std::mt19937 random{11};
  const auto uniform = [&] { return float(random() >> 8) * 0x1p-23f - 1; };
  Weight w;
  w.data = {.dtype = dtype, .rank = 2, .size = {n, k}, .stride = {k, 1}};
  w.interleave = dtype == DType::kF32 ? 1 : 2;
  GuardedMemory memory{size_t(w.panel_bytes() * w.panels())};
  std::vector<u64> table;
  for (i32 p = 0; p < w.panels(); ++p) table.push_back(u64(p * w.panel_bytes()));
  w.data.data = memory.data;
  w.table = table.data();
  const auto weight = [&](i32 r, i32 c) {
    return memory.data + table[size_t(r / kPanelRows)] + w.place(r % kPanelRows, c) * size_of(dtype);
  };
  for (i32 r = 0; r < n; ++r)
    for (i32 c = 0; c < k; ++c) set_element(dtype, weight(r, c), uniform());

  const i64 stride = i64(round_up(k, kOperandCols)) * size_of(x_dtype);
  GuardedMemory x{size_t(stride * round_up(rows, kOperandRows))};
  for (i32 m = 0; m < rows; ++m)
    for (i32 c = 0; c < k; ++c) set_element(x_dtype, x.data + m * stride + c * size_of(x_dtype), uniform());
  const i32 columns = round_up(n, kPanelRows);
  GuardedMemory out{size_t(columns * round_up(rows, kOperandRows) * 4)};
  auto* y = reinterpret_cast<float*>(out.data);
  kernel({x.data, stride, rows, &w, 0, w.panels(), y, columns});

  double worst = 0;
  for (i32 m = 0; m < rows; ++m)
    for (i32 c = 0; c < n; ++c) {
      double sum = 0, magnitude = 0;
      for (i32 i = 0; i < k; ++i) {
        const double product = double(get_element(x_dtype, x.data + m * stride + i * size_of(x_dtype))) *
                               double(get_element(dtype, weight(c, i)));
        sum += product, magnitude += std::abs(product);
      }
      worst = std::max(worst, std::abs(double(y[m * columns + c]) - sum) / (magnitude + 1e-30));
    }
  return worst;
}

constexpr Shape kShapes[] = {{1, 16, 2},    {1, 40, 64},   {1, 33, 4099},  {2, 17, 31},
                             {3, 64, 96},   {5, 20, 1},    {8, 48, 130},   {13, 80, 77},
                             {16, 32, 512}, {17, 50, 545}, {33, 96, 1030}, {70, 16, 63}};

class MatrixLevel : public testing::TestWithParam<SimdLevel> {};

TEST_P(MatrixLevel, WideOperandsGiveExactProducts) {
  for (DType dtype : {DType::kF32, DType::kBf16, DType::kF16})
    for (const Shape& shape : kShapes)
      EXPECT_LT(error_of(GetParam().kernels.wide, DType::kF32, dtype, shape), 1e-5)
          << name(dtype) << " " << shape.rows << " x " << shape.n << " x " << shape.k;
}

TEST_P(MatrixLevel, NarrowOperandsGiveExactProducts) {
  if (!GetParam().kernels.narrow) GTEST_SKIP() << GetParam().name << " has no kernel of bf16 operands";
  for (const Shape& shape : kShapes)
    EXPECT_LT(error_of(GetParam().kernels.narrow, DType::kBf16, DType::kBf16, shape), 1e-5)
        << shape.rows << " x " << shape.n << " x " << shape.k;
}

// x has random numbers in all rows, also in those that a kernel need not multiply.
TEST_P(MatrixLevel, ARowHasTheSameBitsAmongAnyOthers) {
  const MatrixKernels& kernels = GetParam().kernels;
  constexpr i32 kPadded = 96, kOutputs = 80, kTerms = 131;
  std::mt19937 random{5};
  for (const auto& [kernel, x_type, type] : {std::tuple(kernels.wide, DType::kF32, DType::kF32),
                                             {kernels.wide, DType::kF32, DType::kBf16},
                                             {kernels.wide, DType::kF32, DType::kF16},
                                             {kernels.narrow, DType::kBf16, DType::kBf16}}) {
    if (!kernel) continue;
    Weight w;
    w.data = {.dtype = type, .rank = 2, .size = {kOutputs, kTerms}, .stride = {kTerms, 1}};
    w.interleave = type == DType::kF32 ? 1 : 2;
    std::vector<u8> panels(size_t(w.panel_bytes() * w.panels()));
    std::vector<u64> table;
    for (i32 p = 0; p < w.panels(); ++p) table.push_back(u64(p * w.panel_bytes()));
    w.data.data = panels.data(), w.table = table.data();
    const auto fill = [&](u8* to, DType of, size_t bytes) {
      for (size_t i = 0; i < bytes; i += size_t(size_of(of)))
        set_element(of, to + i, float(random() >> 8) * 0x1p-23f - 1);
    };
    fill(panels.data(), type, panels.size());
    const i64 stride = i64(round_up(kTerms, kOperandCols)) * size_of(x_type);
    std::vector<u8> x(size_t(stride * kPadded));
    for (i32 m = 0; m < kPadded; ++m)
      fill(x.data() + m * stride, x_type, size_t((kTerms + 1) * size_of(x_type)));
    for (i32 p = 0; p < w.panels(); ++p)  // the column that makes pairs whole
      for (i32 r = 0; type != DType::kF32 && r < kPanelRows; ++r)
        std::memset(panels.data() + table[size_t(p)] + 2 * w.place(r, kTerms), 0, 2);
    const auto product = [&](i32 first, i32 rows) {
      std::vector<float> y(size_t(round_up(rows, kOperandRows) * kOutputs));
      kernel({x.data() + first * stride, stride, rows, &w, 0, w.panels(), y.data(), kOutputs});
      return y;
    };
    for (const i32 rows : {2, 3, 4, 5, 8, 9, 12, 13, 16, 17, 33, 64}) {
      const auto many = product(1, rows);
      for (const i32 m : {0, rows / 2, rows - 1})
        ASSERT_EQ(std::memcmp(product(1 + m, 1).data(), many.data() + m * kOutputs, kOutputs * 4), 0)
            << name(type) << ": row " << m << " of " << rows;
    }
  }
}

// Every code, at every place in a group of lanes, with and without scales: the bits of the host's conversion.
TEST_P(MatrixLevel, CodesBecomeTheirValues) {
  const CodeDecoder decode = code_decoder(GetParam().target);
  std::vector<float> scales(300), zeros(300);
  for (size_t i = 0; i < scales.size(); ++i)
    scales[i] = 0.37f * float(i + 1), zeros[i] = float(i % 17) - 8.5f;
  for (DType dtype :
       {DType::kF8E4M3, DType::kF8E5M2, DType::kI8, DType::kI4, DType::kBf16, DType::kF16, DType::kF32}) {
    GuardedMemory codes{256};
    for (int i = 0; i < 256; ++i) codes.data[i] = u8(i * 7);
    const i32 all = i32(256 * 8 / bits_of(dtype));
    for (const i32 first : {0, 1, 5, all - 3})
      for (const bool scaled : {false, true}) {
        const i32 count = std::min(all - first, 300);
        std::vector<float> values(size_t(count) + 1, -7);
        decode({.dtype = dtype,
                .data = codes.data,
                .first = first,
                .count = count,
                .scales = scaled ? scales.data() : nullptr,
                .zeros = scaled ? zeros.data() : nullptr,
                .each_scale = first == 1,
                .each_zero = first == 5,
                .to = values.data()});
        for (i32 i = 0; i < count; ++i) {
          float wanted = float(load_number(dtype, reinterpret_cast<const std::byte*>(codes.data), first + i));
          if (scaled)
            wanted = (wanted - zeros[first == 5 ? size_t(i) : 0]) * scales[first == 1 ? size_t(i) : 0];
          ASSERT_TRUE(std::bit_cast<u32>(values[size_t(i)]) == std::bit_cast<u32>(wanted) ||
                      (std::isnan(values[size_t(i)]) && std::isnan(wanted)))
              << name(dtype) << " " << first + i << ": " << values[size_t(i)] << ", wanted " << wanted;
        }
        EXPECT_EQ(values.back(), -7) << name(dtype);
      }
  }
}

// A weight in codes, whose scales end where memory ends.
struct CodedWeight {
  Weight w;
  GuardedMemory memory;
  std::vector<u64> table;

  static Weight weight(Coding coding, i32 n, i32 k) {
    Weight w;
    w.data = {.dtype = DType::kBf16, .rank = 2, .size = {n, k}, .stride = {k, 1}};
    w.interleave = 8 / bits_of(coding.code);
    w.coding = coding;
    return w;
  }
  CodedWeight(Coding coding, i32 n, i32 k)
      : w(weight(coding, n, k)), memory(size_t(w.panel_bytes() * w.panels())) {
    std::mt19937 random{5};
    constexpr float kScales[] = {0.37f, -0.011f, 1e-3f, 0, 3.1e-41f, 7.5f, 0x1p-126f};
    for (i32 p = 0; p < w.panels(); ++p) {
      table.push_back(u64(p * w.panel_bytes()));
      u8* panel = memory.data + table.back();
      for (i64 i = 0; i < w.element_bytes(); ++i) {
        panel[i] = u8(random());
        if (coding.code == Code::kF8E4M3 && (panel[i] & 0x7f) == 0x7f) panel[i] = 0x81;
      }
      for (i64 i = 0; i < w.scale_bytes() / 4; ++i) {
        const float scale = kScales[random() % std::size(kScales)] * (1 + float(random() % 100) / 64);
        std::memcpy(panel + w.element_bytes() + 4 * i, &scale, 4);
      }
    }
    w.data.data = memory.data, w.table = table.data();
  }
};

TEST_P(MatrixLevel, CodesGiveTheBitsOfTheirPanelsInBf16) {
  const MatrixKernels& kernels = GetParam().kernels;
  for (const Code code : {Code::kF8E4M3, Code::kI4})
    for (const u16 group : {0, 3, 32})
      for (const Shape& shape :
           {Shape{1, 70, 64}, {2, 16, 33}, {3, 40, 129}, {7, 100, 2}, {4, 16, 1}, {1, 64, 1030}}) {
        const auto [rows, n, k] = shape;
        const CodedWeight coded({code, group}, n, k);
        Weight floats = coded.w;
        floats.coding = {}, floats.interleave = 2;
        std::vector<u8> values(size_t(floats.panel_bytes() * floats.panels()), 0xff);
        std::vector<u64> table;
        for (i32 p = 0; p < floats.panels(); ++p) {
          table.push_back(u64(p * floats.panel_bytes()));
          kernels.coded.decode(coded.w, coded.memory.data + coded.table[size_t(p)],
                               values.data() + table.back());
        }
        floats.data.data = values.data(), floats.table = table.data();
        for (i32 r = 0; r < n; ++r)
          for (i32 c = 0; c < round_up(k, 2); ++c) {
            u16 bits;
            std::memcpy(&bits,
                        values.data() + table[size_t(r / kPanelRows)] + 2 * floats.place(r % kPanelRows, c),
                        2);
            const float wanted = c < k ? weight_element(coded.w, r, c) : 0;
            ASSERT_EQ(bits, float_to_bf16(wanted)) << name(code) << " by " << group << ": " << r << ", " << c;
          }
        const DType type = kernels.narrow ? DType::kBf16 : DType::kF32;
        const i64 stride = i64(round_up(k, kOperandCols)) * size_of(type);
        std::vector<u8> x(size_t(stride * kOperandRows));
        std::mt19937 random{3};
        for (i32 m = 0; m < rows; ++m)
          for (i32 c = 0; c < k; ++c)
            set_element(type, x.data() + m * stride + c * size_of(type), float(random() >> 8) * 0x1p-23f - 1);
        const i32 columns = round_up(n, kPanelRows);
        std::vector<float> wanted(size_t(kOperandRows * columns)), found(wanted.size());
        const MatrixKernel of_floats = kernels.narrow ? kernels.narrow : kernels.wide;
        of_floats({x.data(), stride, rows, &floats, 0, floats.panels(), wanted.data(), columns});
        if (!kernels.coded.few) continue;  // AMX multiplies what `decode` made
        kernels.coded.few({x.data(), stride, rows, &coded.w, 0, coded.w.panels(), found.data(), columns});
        ASSERT_EQ(std::memcmp(wanted.data(), found.data(), size_t(rows * columns) * 4), 0)
            << name(code) << " by " << group << ": " << rows << " x " << n << " x " << k;
      }
}

INSTANTIATE_TEST_SUITE_P(Levels, MatrixLevel, testing::ValuesIn(simd_levels().begin(), simd_levels().end()),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace heddle
