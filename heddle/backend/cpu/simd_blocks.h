// SIMD blocks for each target of Highway. Compilers store this as a precompiled header: it is most of the time of a tile
// body. A source then reopens the namespaces of the targets with simd_targets.h.
#pragma once

#include "heddle/backend/cpu/simd_includes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/backend/cpu/simd_target_blocks.h"
#include <hwy/foreach_target.h>
// The last target, which foreach_target.h leaves to the file that includes it.
#include "heddle/backend/cpu/simd_target_blocks.h"
