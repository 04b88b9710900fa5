// All tile bodies for ScalarBlock. Units written from scalar_bodies.cpp.in compile some of them each.
#include "heddle/backend/cpu/scalar_block.h"
#include "heddle/tile/block_concept.h"

namespace heddle::scalar {

static_assert(heddle::Block<ScalarBlock, ScalarBlock::Index> && PanelStream<ScalarBlock>);

using Block = ScalarBlock;
#include "op_entries.inc"

}  // namespace heddle::scalar

namespace heddle {
std::span<const BodyEntry<ScalarBlock>> scalar_bodies() {
  using namespace scalar;
  static const BodyEntry<ScalarBlock> all[] = {
#include "op_entry_list.inc"
  };
  return all;
}
}  // namespace heddle
