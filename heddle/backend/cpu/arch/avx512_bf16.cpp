// bf16 products on AVX512-BF16: one instruction multiplies a pair of k for the 16 columns of a panel.
#include "heddle/backend/cpu/arch/arch.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#define HEDDLE_TARGET __attribute__((target("avx512f,avx512bf16")))

namespace heddle {
namespace {

constexpr i64 kStepBytes = 64;  // a panel's 16 rows at a pair of k
constexpr i32 kBlockRows = 12;  // with two panels: 24 of 32 registers hold sums

struct Block {
  const u8* panel[2];
  const u8* x;
  i64 x_stride;  // bytes
  i32 steps;
  float* out;
  i64 out_stride;  // floats
};

// sum + a * b by pairs of bf16. As an instruction, since clang 16 crashes on the intrinsic's operands where they
// come from memory.
HEDDLE_TARGET inline __m512 dot_pairs(__m512 sum, __m512i a, __m512i b) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
}

template <int kRows, int kPanels>
HEDDLE_TARGET void multiply_block(const Block& block) {
  __m512 sum[kRows][kPanels];
#pragma GCC unroll 12
  for (i32 m = 0; m < kRows; ++m)
#pragma GCC unroll 2
    for (i32 p = 0; p < kPanels; ++p) sum[m][p] = _mm512_setzero_ps();
  for (i32 s = 0; s < block.steps; ++s) {
    __m512i w[kPanels];
#pragma GCC unroll 2
    for (i32 p = 0; p < kPanels; ++p) w[p] = _mm512_loadu_si512(block.panel[p] + s * kStepBytes);
#pragma GCC unroll 12
    for (i32 m = 0; m < kRows; ++m) {
      const i32 pair = *reinterpret_cast<const i32*>(block.x + m * block.x_stride + s * 4);
      const __m512i x = _mm512_set1_epi32(pair);
#pragma GCC unroll 2
      for (i32 p = 0; p < kPanels; ++p) sum[m][p] = dot_pairs(sum[m][p], x, w[p]);
    }
  }
#pragma GCC unroll 12
  for (i32 m = 0; m < kRows; ++m)
#pragma GCC unroll 2
    for (i32 p = 0; p < kPanels; ++p)
      _mm512_storeu_ps(block.out + m * block.out_stride + p * kPanelRows, sum[m][p]);
}

template <int kPanels>
void multiply_rows(const MatrixTask& task, i32 first) {
  Block block{.x = task.x,
              .x_stride = task.x_stride,
              .steps = (task.w->cols() + 1) / 2,
              .out = task.out + first * kPanelRows,
              .out_stride = task.out_stride};
  for (i32 p = 0; p < kPanels; ++p) block.panel[p] = task.panel(first + p);
  i32 left = task.rows;
  const auto take = [&](i32 rows, void (*kernel)(const Block&)) {
    for (; left >= rows; left -= rows) {
      kernel(block);
      block.x += rows * block.x_stride;
      block.out += rows * block.out_stride;
    }
  };
  take(kBlockRows, multiply_block<kBlockRows, kPanels>);
  take(4, multiply_block<4, kPanels>);
  take(1, multiply_block<1, kPanels>);
}

void multiply(const MatrixTask& task) {
  i32 p = 0;
  for (; p + 2 <= task.panels; p += 2) multiply_rows<2>(task, p);
  if (p < task.panels) multiply_rows<1>(task, p);
}

}  // namespace

bool has_avx512_bf16() {
  u32 features, b, c, d;
  return __get_cpuid_count(7, 1, &features, &b, &c, &d) && (features & (1u << 5)) != 0;
}

MatrixKernel avx512_bf16_kernel() {
  return multiply;
}

}  // namespace heddle

#else

namespace heddle {

bool has_avx512_bf16() {
  return false;
}
MatrixKernel avx512_bf16_kernel() {
  return nullptr;
}

}  // namespace heddle

#endif
