// Tiles over SIMD blocks, once for each target of Highway. Units written from simd_bodies.cpp.in compile the tile bodies.
#include "heddle/backend/cpu/simd_blocks.h"
#include "heddle/backend/cpu/tiles_of.h"
#include "heddle/tile/block_concept.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/backend/cpu/simd_tiles.cpp"
#include "heddle/backend/cpu/simd_targets.h"
// simd_targets.h comes first.
#include <hwy/ops/set_macros-inl.h>

HWY_BEFORE_NAMESPACE();
namespace heddle {
namespace HWY_NAMESPACE {

static_assert(heddle::Block<SimdBlock, Lanes, FewLanes> && PanelStream<SimdBlock>);

using Block = SimdBlock;
#include "op_entries.inc"

std::span<const BodyEntry<Block>> bodies() {
  static const BodyEntry<Block> all[] = {
#include "op_entry_list.inc"
  };
  return all;
}

std::unique_ptr<Tiles> create_tiles_here(const Program& program, const Memory& memory,
                                         const MatrixKernels& kernels, int threads) {
  return std::make_unique<TilesOf<Block>>(program, memory, bodies(), kernels, threads);
}

const OpTiles& op_tiles_here(const MatrixKernels& kernels) {
  static const OpTilesOf<Block> tiles(bodies(), kernels);
  return tiles;
}

}  // namespace HWY_NAMESPACE
}  // namespace heddle
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle {

HWY_EXPORT(create_tiles_here);
HWY_EXPORT(op_tiles_here);

const OpTiles& op_tiles() {
  const SimdLevel& level = simd_level("");
  hwy::ChosenTarget chosen;
  chosen.Update(level.target);
  return HWY_DISPATCH_TABLE(op_tiles_here)[chosen.GetIndex()](level.kernels);
}

std::unique_ptr<Tiles> create_tiles(const SimdLevel& level, const Program& program, const Memory& memory,
                                    int threads) {
  hwy::ChosenTarget chosen;
  chosen.Update(level.target);
  return HWY_DISPATCH_TABLE(create_tiles_here)[chosen.GetIndex()](program, memory, level.kernels, threads);
}

}  // namespace heddle
#endif
