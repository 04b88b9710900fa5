// How much work a randomised test does: a little in the usual run, and more on request.
#pragma once

#include <algorithm>
#include <cstdlib>

#include "heddle/base/types.h"

namespace heddle {

// `usual` times HEDDLE_TEST_SCALE.
inline u64 rounds(u64 usual) {
  const char* scale = std::getenv("HEDDLE_TEST_SCALE");
  return u64(double(usual) * (scale ? std::max(0.0, std::atof(scale)) : 1));
}

}  // namespace heddle
