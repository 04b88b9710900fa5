// Gives an op of another project its tile body on the CPU. Include x.cuh in namespace heddle::bodies after this header;
// examples/cmake_op shows it.
#pragma once

#include <bit>

#include "heddle/backend/cpu/plain_block.h"
#include "heddle/ir/op.h"

// The functions that bodies call.
namespace heddle::bodies {
#include "heddle/backend/cpu/float_value.h"
#include "heddle/tile/math.cuh"
}  // namespace heddle::bodies

namespace heddle {

template <class Body, class Args>
void set_body(OpSpec& op) {
  op.body = [](const std::byte* args, const TileCoord& tile) {
    static thread_local PlainBlock<false> block;
    block.begin();
    Body::run(block, as<Args>(args), tile);
  };
  op.watched_body = [](const std::byte* args, const TileCoord& tile, const AccessHook& hook) {
    static thread_local PlainBlock<true> block;
    block.begin(&hook);
    Body::run(block, as<Args>(args), tile);
  };
}

}  // namespace heddle
