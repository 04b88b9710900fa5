// Panels of weights in codes, once for each target of Highway: products of few rows, whose weights are decoded in registers, and panels
// of bf16 for the kernels of many rows. A sum has the order and the values that those have on the bf16 panel.
#include <algorithm>

#include <hwy/cache_control.h>

#include "heddle/backend/cpu/arch/matrix.h"
#include "heddle/backend/cpu/simd_blocks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/backend/cpu/simd_coded.cpp"
#include "heddle/backend/cpu/simd_targets.h"
// simd_targets.h comes first.
#include <hwy/ops/set_macros-inl.h>

HWY_BEFORE_NAMESPACE();
namespace heddle {
namespace HWY_NAMESPACE {
namespace coded {

using I8 = hn::Rebind<int8_t, D>;
using I16 = hn::Rebind<int16_t, D>;
using I32 = hn::RebindToSigned<D>;
using F16 = hn::Rebind<hwy::float16_t, D>;

#include "heddle/backend/cpu/simd_panels.h"

// Panels and rows of the register block, as those of few rows in simd_matrix.cpp.
#if HWY_TARGET <= HWY_AVX3
constexpr i32 kMostRows = 4, kMostPanels = 4;
#elif HWY_TARGET <= HWY_AVX2
constexpr i32 kMostRows = 2, kMostPanels = 2;
#else
constexpr i32 kMostRows = 1, kMostPanels = 1;
#endif

// Bytes of a panel's 16 rows at two columns.
template <Code kCode>
constexpr i64 kStepBytes = 2 * kPanelRows * bits_of(kCode) / 8;

// Codes of a column as f16, whose exponent is 8 too small: multiplications of subnormal floats are slow, conversions of subnormal
// f16 are not.
HWY_INLINE Vec from_f8(const u8* at) {
  const I16 halves;
  const auto wide = hn::PromoteTo(halves, hn::LoadU(I8(), reinterpret_cast<const int8_t*>(at)));
  const auto bits = hn::And(hn::ShiftLeft<7>(wide), hn::Set(halves, int16_t(0xbfff)));
  return hn::Mul(hn::PromoteTo(d, hn::BitCast(F16(), bits)), hn::Set(d, 256.0f));
}

// The bits of the nearest bf16, ties to even, of a finite value.
HWY_INLINE Vec32 rounded_bits(Vec value) {
  const Vec32 bits = hn::BitCast(d32, value), odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1u));
  return hn::And(hn::Add(hn::Add(bits, hn::Set(d32, 0x7fffu)), odd), hn::Set(d32, 0xffff0000u));
}

// Steps [first, last) whose even columns have the scales of one group and whose odd ones those of another; the last step of an odd
// number of columns has one.
struct Run {
  i32 first, last, even, odd;
  bool both;
};

template <class F>
HWY_INLINE void each_run(const Weight& w, F&& f) {
  const i32 group = w.group_cols(), whole = w.cols() / 2;
  for (i32 s = 0; s < whole;) {
    const i32 even = 2 * s / group, odd = (2 * s + 1) / group;
    const i32 last = even != odd ? s + 1 : std::min(whole, std::max(s + 1, (even + 1) * group / 2));
    f(Run{s, last, even, odd, true});
    s = last;
  }
  if (w.cols() % 2 != 0) f(Run{whole, whole + 1, 2 * whole / group, 0, false});
}

// The bits of the values of a step's two columns, of one lane vector of rows. `scales` has those of the panel.
template <Code kCode>
HWY_INLINE void load_pair(const u8* step, const float* scales, const Run& run, i32 v, Vec32 (&bits)[2]) {
  Vec code[2];
  if constexpr (kCode == Code::kF8E4M3) {
    code[0] = from_f8(step + v * kLanes);
    if (run.both) code[1] = from_f8(step + kPanelRows + v * kLanes);
  } else {
    const auto pair =
        hn::PromoteTo(I32(), hn::LoadU(I8(), reinterpret_cast<const int8_t*>(step + v * kLanes)));
    code[0] = hn::ConvertTo(d, hn::ShiftRight<28>(hn::ShiftLeft<28>(pair)));
    code[1] = hn::ConvertTo(d, hn::ShiftRight<4>(pair));
  }
  const auto scale = [&](i32 group)
                         HWY_ATTR { return hn::LoadU(d, scales + group * kPanelRows + v * kLanes); };
  bits[0] = rounded_bits(hn::Mul(code[0], scale(run.even)));
  bits[1] = run.both ? rounded_bits(hn::Mul(code[1], scale(run.odd))) : hn::Zero(d32);
}

template <Code kCode>
struct CodedPanels {
  template <i32 kRows, i32 kPanels>
  static void multiply(const PanelBlock& block) {
    BlockSums<kRows, kPanels> sums;
    const i64 scales_at = block.w->element_bytes();
    each_run(*block.w, [&](const Run& run) HWY_ATTR {
      for (i32 s = run.first; s < run.last; ++s) {
        Vec w[kPanels][2][kVecs];
#pragma GCC unroll 4
        for (i32 p = 0; p < kPanels; ++p) {
          const u8* step = block.panel[p] + s * kStepBytes<kCode>;
          const auto* scales = reinterpret_cast<const float*>(block.panel[p] + scales_at);
          hwy::Prefetch(step + kAhead);
#pragma GCC unroll 16
          for (i32 v = 0; v < kVecs; ++v) {
            Vec32 bits[2];
            load_pair<kCode>(step, scales, run, v, bits);
            w[p][0][v] = hn::BitCast(d, bits[0]), w[p][1][v] = hn::BitCast(d, bits[1]);
          }
        }
        sums.add(block, s * 2, w);
      }
    });
    sums.store(block);
  }
};

#if HWY_TARGET <= HWY_AVX3
// sum + a * b by pairs of bf16, as arch/avx512_bf16.cpp has it. Called only where the CPU has the instruction.
HWY_INLINE Vec dot_pairs(Vec sum, Vec32 a, Vec32 b) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
  return sum;
}

// Panels times operands of bf16, with the sums of the kernel of floats.
template <Code kCode>
struct CodedPairs {
  template <i32 kRows, i32 kPanels>
  static void multiply(const PanelBlock& block) {
    BlockSums<kRows, kPanels> sums;
    const i64 scales_at = block.w->element_bytes();
    each_run(*block.w, [&](const Run& run) HWY_ATTR {
      for (i32 s = run.first; s < run.last; ++s)
#pragma GCC unroll 4
        for (i32 p = 0; p < kPanels; ++p) {
          const u8* step = block.panel[p] + s * kStepBytes<kCode>;
          hwy::Prefetch(step + kAhead);
          Vec32 bits[2];
          load_pair<kCode>(step, reinterpret_cast<const float*>(block.panel[p] + scales_at), run, 0, bits);
          const Vec32 pair = hn::Or(hn::ShiftRight<16>(bits[0]), bits[1]);
#pragma GCC unroll 4
          for (i32 m = 0; m < kRows; ++m) {
            const auto x = reinterpret_cast<const u32*>(block.x + m * block.x_stride)[s];
            sums.of[m][p][0] = dot_pairs(sums.of[m][p][0], hn::Set(d32, x), pair);
          }
        }
    });
    sums.store(block);
  }
};
#endif

template <Code kCode>
void decode_steps(const Weight& w, const u8* panel, u8* to) {
  const auto* scales = reinterpret_cast<const float*>(panel + w.element_bytes());
  each_run(w, [&](const Run& run) HWY_ATTR {
    for (i32 s = run.first; s < run.last; ++s)
      for (i32 v = 0; v < kVecs; ++v) {
        Vec32 bits[2];
        load_pair<kCode>(panel + s * kStepBytes<kCode>, scales, run, v, bits);
        hn::StoreU(hn::Or(hn::ShiftRight<16>(bits[0]), bits[1]), d32,
                   reinterpret_cast<u32*>(to) + s * kPanelRows + v * kLanes);
      }
  });
}

}  // namespace coded

void decode_panel(const Weight& w, const u8* panel, u8* to) {
  if (w.coding.code == Code::kI4) return coded::decode_steps<Code::kI4>(w, panel, to);
  coded::decode_steps<Code::kF8E4M3>(w, panel, to);
}

template <template <Code> class Panels>
void multiply_codes(const MatrixTask& task) {
  if (task.w->coding.code == Code::kI4)
    return coded::multiply_panels<Panels<Code::kI4>, coded::kMostRows, coded::kMostPanels>(task);
  coded::multiply_panels<Panels<Code::kF8E4M3>, coded::kMostRows, coded::kMostPanels>(task);
}

// NOLINTNEXTLINE(misc-use-anonymous-namespace): one for each target
CodedKernels coded_kernels_here(CodedOperand operand) {
  if (operand == CodedOperand::kWide)
    return {multiply_codes<coded::CodedPanels>, coded::kMostRows, decode_panel};
#if HWY_TARGET <= HWY_AVX3
  if (operand == CodedOperand::kNarrowPairs)
    return {multiply_codes<coded::CodedPairs>, coded::kMostRows, decode_panel};
#endif
  return {.decode = decode_panel};
}

}  // namespace HWY_NAMESPACE
}  // namespace heddle
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle {

HWY_EXPORT(coded_kernels_here);

CodedKernels coded_kernels(long long target, CodedOperand operand) {
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  return HWY_DISPATCH_TABLE(coded_kernels_here)[chosen.GetIndex()](operand);
}

}  // namespace heddle
#endif
