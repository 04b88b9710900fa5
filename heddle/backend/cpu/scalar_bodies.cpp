// The tile bodies for ScalarBlock. op_bodies.inc includes every op's body,
// op_body_list.inc names them; both are generated from the folders of ops.
#include <bit>

#include "heddle/backend/cpu/scalar_block.h"
#include "heddle/tile/block_concept.h"
#include "op_headers.inc"

namespace heddle::scalar {

#include "heddle/backend/cpu/float_value.h"
#include "heddle/tile/epilogue.cuh"
#include "heddle/tile/math.cuh"
#include "op_bodies.inc"

static_assert(heddle::Block<ScalarBlock, ScalarBlock::Index> && PanelStream<ScalarBlock>);

using Block = ScalarBlock;
static constexpr BodyEntry<Block> kBodies[] = {
#include "op_body_list.inc"
};

}  // namespace heddle::scalar

namespace heddle {
std::span<const BodyEntry<ScalarBlock>> scalar_bodies() {
  return scalar::kBodies;
}
}  // namespace heddle
