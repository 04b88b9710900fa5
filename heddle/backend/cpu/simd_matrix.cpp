// Matrix kernels over f32 operands, once for each target of Highway.
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

#include "heddle/backend/cpu/simd_panels.h"

constexpr i64 kStepBytes = 64;  // a panel's 16 rows at one k (f32) or at a pair of k (16 bits)

// Rows and panels of the register blocks: of many rows, where sums fill the register file but for weights and
// operand, and of few rows, where several streams of weights hide more of the memory's latency than one.
#if HWY_TARGET <= HWY_AVX3
constexpr i32 kManyRows = 12, kManyPanels = 2, kFewRows = 4, kFewPanels = 4;
#elif HWY_TARGET <= HWY_AVX2
constexpr i32 kManyRows = 6, kManyPanels = 1, kFewRows = 2, kFewPanels = 2;
#else
constexpr i32 kManyRows = 2, kManyPanels = 1, kFewRows = 1, kFewPanels = 1;
#endif

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

template <DType kType>
struct FloatPanels {
  template <i32 kRows, i32 kPanels>
  static void multiply(const PanelBlock& block) {
    constexpr i32 kCols = kStepCols<kType>;
    const i32 steps = (block.w->cols() + kCols - 1) / kCols, run = block.run > 0 ? block.run / kCols : steps;
    for (i32 begin = 0;;) {
      const i32 end = std::min(steps, begin + run);
      BlockSums<kRows, kPanels> sums;
      for (i32 s = begin; s < end; ++s) {
        Vec w[kPanels][kCols][kVecs];
#pragma GCC unroll 4
        for (i32 p = 0; p < kPanels; ++p) {
          hwy::Prefetch(block.panel[p] + s * kStepBytes + kAhead);
          load_step<kType>(block.panel[p] + s * kStepBytes, w[p]);
        }
        sums.add(block, s * kCols, w);
      }
      sums.store(block, begin > 0);
      if (end == steps) return;
      begin = end;
    }
  }
};

template <DType kType>
void multiply_by_rows(const MatrixTask& task) {
  if (task.rows <= kFewRows)
    multiply_panels<FloatPanels<kType>, kFewRows, kFewPanels>(task);
  else
    multiply_panels<FloatPanels<kType>, kManyRows, kManyPanels>(task);
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
