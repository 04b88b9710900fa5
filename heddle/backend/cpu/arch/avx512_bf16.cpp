// bf16 products on AVX512-BF16: one instruction multiplies a pair of k for the 16 columns of a panel.
#include "heddle/backend/cpu/arch/arch.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#define HEDDLE_TARGET __attribute__((target("avx512f,avx512bf16")))

namespace heddle {
namespace {

constexpr i64 kStepBytes = 64;  // a panel's 16 rows at a pair of k
// Rows by panels of a block: 24 of 32 registers hold sums.
constexpr i32 kManyRows = 12, kManyPanels = 2, kFewRows = 8, kFewPanels = 3;
// Memory is the limit for up to four rows: more streams of weights, and fetches a little before the loads.
constexpr i32 kOnePanels = 4;
constexpr i64 kAhead = 2048;  // bytes

struct Block {
  const u8* panel[kFewPanels];
  const u8* x;
  i64 x_stride;  // bytes
  i32 steps;
  float* out;
  i64 out_stride;  // floats
  // The panels that come next, on their way to the L2 cache: each of `blocks` blocks of rows fetches a share.
  const u8* next[kFewPanels];
  i32 blocks;
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
#pragma GCC unroll 3
    for (i32 p = 0; p < kPanels; ++p) sum[m][p] = _mm512_setzero_ps();
  i32 until_fetch = 1;
  i64 fetched = 0;
  for (i32 s = 0; s < block.steps; ++s) {
    __m512i w[kPanels];
    if (--until_fetch == 0) {
      until_fetch = block.blocks;
#pragma GCC unroll 3
      for (i32 p = 0; p < kPanels; ++p)
        _mm_prefetch(reinterpret_cast<const char*>(block.next[p] + fetched), _MM_HINT_T1);
      fetched += kStepBytes;
    }
#pragma GCC unroll 3
    for (i32 p = 0; p < kPanels; ++p) w[p] = _mm512_loadu_si512(block.panel[p] + s * kStepBytes);
#pragma GCC unroll 12
    for (i32 m = 0; m < kRows; ++m) {
      const i32 pair = *reinterpret_cast<const i32*>(block.x + m * block.x_stride + s * 4);
      const __m512i x = _mm512_set1_epi32(pair);
#pragma GCC unroll 3
      for (i32 p = 0; p < kPanels; ++p) sum[m][p] = dot_pairs(sum[m][p], x, w[p]);
    }
  }
#pragma GCC unroll 12
  for (i32 m = 0; m < kRows; ++m)
#pragma GCC unroll 3
    for (i32 p = 0; p < kPanels; ++p)
      _mm512_storeu_ps(block.out + m * block.out_stride + p * kPanelRows, sum[m][p]);
}

// All rows times kPanels panels, kRows at a time; the last ones rounded up to fours, whose padding there is.
template <int kRows, int kPanels>
void multiply_rows(const MatrixTask& task, i32 first) {
  Block block{.x = task.x,
              .x_stride = task.x_stride,
              .steps = (task.w->cols() + 1) / 2,
              .out = task.out + first * kPanelRows,
              .out_stride = task.out_stride,
              .blocks = (task.rows + kRows - 1) / kRows};
  const i64 share = (block.steps + block.blocks - 1) / block.blocks * kStepBytes;
  const i32 last = task.w->panels() - task.first_panel - 1;
  for (i32 p = 0; p < kPanels; ++p) {
    block.panel[p] = task.panel(first + p);
    block.next[p] = task.panel(first + kPanels + p < last ? first + kPanels + p : last);
  }
  const auto take = [&](i32 rows, void (*kernel)(const Block&)) {
    kernel(block);
    block.x += rows * block.x_stride;
    block.out += rows * block.out_stride;
    for (i32 p = 0; p < kPanels; ++p) block.next[p] += share;
  };
  i32 left = task.rows;
  for (; left > kRows - 4; left -= kRows) take(kRows, multiply_block<kRows, kPanels>);
  if (left > 4)
    take(8, multiply_block<8, kPanels>);
  else if (left > 0)
    take(4, multiply_block<4, kPanels>);
}

// All rows, of which there are no more than kRows, with memory as the limit.
template <int kRows, int kPanels>
HEDDLE_TARGET void multiply_few(const MatrixTask& task, i32 first) {
  __m512 sum[kRows][kPanels];
  const u8* panel[kPanels];
#pragma GCC unroll 4
  for (i32 p = 0; p < kPanels; ++p) {
    panel[p] = task.panel(first + p);
#pragma GCC unroll 4
    for (i32 m = 0; m < kRows; ++m) sum[m][p] = _mm512_setzero_ps();
  }
  const i32 steps = (task.w->cols() + 1) / 2;
  for (i32 s = 0; s < steps; ++s) {
    __m512i w[kPanels];
#pragma GCC unroll 4
    for (i32 p = 0; p < kPanels; ++p) {
      _mm_prefetch(reinterpret_cast<const char*>(panel[p] + s * kStepBytes + kAhead), _MM_HINT_T0);
      w[p] = _mm512_loadu_si512(panel[p] + s * kStepBytes);
    }
#pragma GCC unroll 4
    for (i32 m = 0; m < kRows; ++m) {
      const __m512i x = _mm512_set1_epi32(*reinterpret_cast<const i32*>(task.x + m * task.x_stride + s * 4));
#pragma GCC unroll 4
      for (i32 p = 0; p < kPanels; ++p) sum[m][p] = dot_pairs(sum[m][p], x, w[p]);
    }
  }
#pragma GCC unroll 4
  for (i32 m = 0; m < kRows; ++m)
#pragma GCC unroll 4
    for (i32 p = 0; p < kPanels; ++p)
      _mm512_storeu_ps(task.out + m * task.out_stride + (first + p) * kPanelRows, sum[m][p]);
}

template <int kRows>
void multiply_few_rows(const MatrixTask& task) {
  i32 p = 0;
  for (; p + kOnePanels <= task.panels; p += kOnePanels) multiply_few<kRows, kOnePanels>(task, p);
  for (; p < task.panels; ++p) multiply_few<kRows, 1>(task, p);
}

template <int kRows, int kPanels>
void multiply_panels(const MatrixTask& task) {
  i32 p = 0;
  for (; p + kPanels <= task.panels; p += kPanels) multiply_rows<kRows, kPanels>(task, p);
  for (; p < task.panels; ++p) multiply_rows<kRows, 1>(task, p);
}

void multiply(const MatrixTask& task) {
  if (task.rows == 1) return multiply_few_rows<1>(task);
  if (task.rows == 2) return multiply_few_rows<2>(task);
  if (task.rows <= 4) return multiply_few_rows<4>(task);
  if (task.rows > kManyRows && task.rows <= 2 * kFewRows) return multiply_panels<kFewRows, kFewPanels>(task);
  multiply_panels<kManyRows, kManyPanels>(task);
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
