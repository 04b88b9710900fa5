// Includes HWY_TARGET_INCLUDE for each target of Highway but the last, after simd_blocks.h did so with the blocks. A source
// names itself there, includes this and then <hwy/ops/set_macros-inl.h>, which chooses the target at hand.
#pragma once

#undef HIGHWAY_HWY_FOREACH_TARGET_H_
#undef HWY_TARGET_TOGGLE
#include <hwy/foreach_target.h>
