// The SIMD blocks of one target of Highway. Included once per target by simd_blocks.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace heddle {
namespace HWY_NAMESPACE {

#include "heddle/backend/cpu/simd_target.inc"

}  // namespace HWY_NAMESPACE
}  // namespace heddle
HWY_AFTER_NAMESPACE();
