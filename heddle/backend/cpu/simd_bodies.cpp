// The tile bodies for SIMD blocks, once for each target of Highway.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/backend/cpu/simd_bodies.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first.
#include <hwy/highway.h>

#include "heddle/backend/cpu/element.h"
#include "heddle/backend/cpu/tiles_of.h"
#include "heddle/ir/step.h"
#include "heddle/tile/block.h"
#include "op_headers.inc"

HWY_BEFORE_NAMESPACE();
namespace heddle {
namespace HWY_NAMESPACE {

// Each needs the ones before it.
// clang-format off
#include "heddle/backend/cpu/float_value.h"
#include "heddle/backend/cpu/simd_value.h"
#include "heddle/tile/math.cuh"
#include "heddle/backend/cpu/simd_block.h"
#include "op_bodies.inc"
// clang-format on

using Block = SimdBlock;
static constexpr BodyEntry<Block> kBodies[] = {
#include "op_body_list.inc"
};

std::unique_ptr<Tiles> create_tiles_here(const Program& program, const Memory& memory,
                                         const MatrixKernels& kernels, int threads) {
  return std::make_unique<TilesOf<Block>>(program, memory, kBodies, kernels, threads);
}

}  // namespace HWY_NAMESPACE
}  // namespace heddle
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle {

HWY_EXPORT(create_tiles_here);

std::unique_ptr<Tiles> create_tiles(const SimdLevel& level, const Program& program, const Memory& memory,
                                    int threads) {
  hwy::ChosenTarget chosen;
  chosen.Update(level.target);
  return HWY_DISPATCH_TABLE(create_tiles_here)[chosen.GetIndex()](program, memory, level.kernels, threads);
}

}  // namespace heddle
#endif
