// Matrix kernels over f32 operands, once for each target of Highway. A block of rows times one or two panels
// stays in registers along all of k: a sum has one order, whatever rows and panels stand beside it.
#include <hwy/cache_control.h>

#include "heddle/backend/cpu/arch/matrix.h"
#include "heddle/backend/cpu/simd_blocks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/backend/cpu/simd_matrix.cpp"
#include "heddle/backend/cpu/simd_targets.h"
// simd_targets.h comes first.
#include <hwy/ops/set_macros-inl.h>

HWY_BEFORE_NAMESPACE();
namespace heddle {
namespace HWY_NAMESPACE {

constexpr i32 kVecs = kPanelRows / kLanes;  // lane vectors across a panel
constexpr i64 kStepBytes = 64;              // a panel's 16 rows at one k (f32) or at a pair of k (16 bits)
constexpr i64 kAhead = 2048;                // bytes that prefetch runs before the loads

// Rows and panels of the register blocks: of many rows, where sums fill the register file but for weights and
// operand, and of few rows, where several streams of weights hide more of the memory's latency than one.
#if HWY_TARGET <= HWY_AVX3
constexpr i32 kManyRows = 12, kManyPanels = 2, kFewRows = 4, kFewPanels = 4;
#elif HWY_TARGET <= HWY_AVX2
constexpr i32 kManyRows = 6, kManyPanels = 1, kFewRows = 2, kFewPanels = 2;
#else
constexpr i32 kManyRows = 2, kManyPanels = 1, kFewRows = 1, kFewPanels = 1;
#endif
constexpr i32 kMaxPanels = kFewPanels > kManyPanels ? kFewPanels : kManyPanels;

template <DType kType>
constexpr i32 kStepCols = kType == DType::kF32 ? 1 : 2;

// One step of a panel, widened: values[c][v] holds column c of the step for the v-th group of rows.
template <DType kType>
HWY_INLINE void load_step(const u8* at, Vec (&values)[kStepCols<kType>][kVecs]) {
#pragma GCC unroll 16
  for (i32 v = 0; v < kVecs; ++v) {
    if constexpr (kType == DType::kF32) {
      values[0][v] = hn::LoadU(d, reinterpret_cast<const float*>(at) + v * kLanes);
    } else {
      const ValuePair pair = load_lane_pairs(kType, at + v * kLanes * 4);
      values[0][v] = pair.first.v;
      values[1][v] = pair.second.v;
    }
  }
}

struct Block {
  const u8* panel[kMaxPanels];
  const float* x;
  i64 x_stride;    // floats
  i32 steps, run;  // run: steps
  float* out;
  i64 out_stride;
};

template <DType kType, i32 kRows, i32 kPanels>
void multiply_block(const Block& block) {
  constexpr i32 kCols = kStepCols<kType>;
  for (i32 begin = 0;;) {
    Vec sum[kRows][kPanels][kVecs];
#pragma GCC unroll 64
    for (i32 i = 0; i < kRows * kPanels * kVecs; ++i) (&sum[0][0][0])[i] = hn::Zero(d);

    const i32 end = std::min(block.steps, begin + block.run);
    for (i32 s = begin; s < end; ++s) {
      Vec w[kPanels][kCols][kVecs];
#pragma GCC unroll 4
      for (i32 p = 0; p < kPanels; ++p) {
        hwy::Prefetch(block.panel[p] + s * kStepBytes + kAhead);
        load_step<kType>(block.panel[p] + s * kStepBytes, w[p]);
      }
#pragma GCC unroll 2
      for (i32 c = 0; c < kCols; ++c)
#pragma GCC unroll 16
        for (i32 m = 0; m < kRows; ++m) {
          const Vec x = hn::Set(d, block.x[m * block.x_stride + s * kCols + c]);
#pragma GCC unroll 4
          for (i32 p = 0; p < kPanels; ++p)
#pragma GCC unroll 16
            for (i32 v = 0; v < kVecs; ++v) sum[m][p][v] = hn::MulAdd(x, w[p][c][v], sum[m][p][v]);
        }
    }

#pragma GCC unroll 16
    for (i32 m = 0; m < kRows; ++m)
#pragma GCC unroll 4
      for (i32 p = 0; p < kPanels; ++p)
#pragma GCC unroll 16
        for (i32 v = 0; v < kVecs; ++v) {
          float* const out = block.out + m * block.out_stride + p * kPanelRows + v * kLanes;
          hn::StoreU(begin == 0 ? sum[m][p][v] : hn::Add(hn::LoadU(d, out), sum[m][p][v]), d, out);
        }
    if (end == block.steps) return;
    begin = end;
  }
}

// All rows of the operand times kPanels panels, kRows at a time.
template <DType kType, i32 kRows, i32 kPanels>
void multiply_rows(const MatrixTask& task, i32 first) {
  Block block{.x = reinterpret_cast<const float*>(task.x),
              .x_stride = task.x_stride / 4,
              .steps = (task.w->cols() + kStepCols<kType> - 1) / kStepCols<kType>,
              .out = task.out + first * kPanelRows,
              .out_stride = task.out_stride};
  block.run = task.run > 0 ? task.run / kStepCols<kType> : block.steps;
  for (i32 p = 0; p < kPanels; ++p) block.panel[p] = task.panel(first + p);
  i32 left = task.rows;
  const auto take = [&](i32 rows, void (*kernel)(const Block&)) {
    for (; left >= rows; left -= rows) {
      kernel(block);
      block.x += rows * block.x_stride;
      block.out += rows * block.out_stride;
    }
  };
  take(kRows, multiply_block<kType, kRows, kPanels>);
  if constexpr (kRows > 8) take(8, multiply_block<kType, 8, kPanels>);
  if constexpr (kRows > 4) take(4, multiply_block<kType, 4, kPanels>);
  if constexpr (kRows > 2) take(2, multiply_block<kType, 2, kPanels>);
  if constexpr (kRows > 1) take(1, multiply_block<kType, 1, kPanels>);
}

template <DType kType, i32 kRows, i32 kPanels>
void multiply_panels(const MatrixTask& task) {
  i32 p = 0;
  for (; p + kPanels <= task.panels; p += kPanels) multiply_rows<kType, kRows, kPanels>(task, p);
  if constexpr (kPanels > 1)
    for (; p < task.panels; ++p) multiply_rows<kType, kRows, 1>(task, p);
}

template <DType kType>
void multiply_by_rows(const MatrixTask& task) {
  if (task.rows <= kFewRows)
    multiply_panels<kType, kFewRows, kFewPanels>(task);
  else
    multiply_panels<kType, kManyRows, kManyPanels>(task);
}

void multiply_wide(const MatrixTask& task) {
  switch (task.w->data.dtype) {
    case DType::kBf16:
      return multiply_by_rows<DType::kBf16>(task);
    case DType::kF16:
      return multiply_by_rows<DType::kF16>(task);
    default:
      return multiply_by_rows<DType::kF32>(task);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heddle
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle {

HWY_EXPORT(multiply_wide);

MatrixKernel wide_kernel(long long target) {
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  return HWY_DISPATCH_TABLE(multiply_wide)[chosen.GetIndex()];
}

}  // namespace heddle
#endif
