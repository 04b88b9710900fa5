#include "heddle/backend/cpu/simd.h"

#include <vector>

#include <hwy/highway.h>

#include "heddle/backend/cpu/arch/arch.h"
#include "heddle/base/error.h"

namespace heddle {
namespace {

struct Target {
  const char* name;
  long long bit;
};
// Best first. Highway's AVX3_DL and SSSE3 differ from their neighbours in nothing that tiles use.
constexpr Target kTargets[] = {{"avx3", HWY_AVX3}, {"avx2", HWY_AVX2}, {"sse4", HWY_SSE4}};

std::vector<SimdLevel> find_levels() {
  std::vector<SimdLevel> levels;
  const auto add = [&](const char* name, long long target, CodedOperand operand = CodedOperand::kWide,
                       MatrixKernel narrow = nullptr) {
    const bool terms = operand == CodedOperand::kNarrowTiles;
    levels.push_back({name, target, {wide_kernel(target), narrow, terms, coded_kernels(target, operand)}});
  };
  const long long supported = hwy::SupportedTargets() & HWY_TARGETS;  // and compiled
  if (supported & HWY_AVX3) {
    if (has_amx_bf16()) add("amx", HWY_AVX3, CodedOperand::kNarrowTiles, amx_bf16_kernel());
    if (has_avx512_bf16()) add("avx512_bf16", HWY_AVX3, CodedOperand::kNarrowPairs, avx512_bf16_kernel());
  }
  for (const Target& target : kTargets)
    if (supported & target.bit) add(target.name, target.bit);
  add("baseline", HWY_STATIC_TARGET);
  return levels;
}

}  // namespace

std::span<const SimdLevel> simd_levels() {
  static const std::vector<SimdLevel> levels = find_levels();
  return levels;
}

const SimdLevel& simd_level(std::string_view name) {
  std::string known;
  for (const SimdLevel& level : simd_levels()) {
    if (name.empty() || name == level.name) return level;
    known += std::string(known.empty() ? "" : ", ") + level.name;
  }
  fail(ErrorCode::kInvalidArgument, "[simd] {} is not a level of this CPU; it has {}", name, known);
}

}  // namespace heddle
