// How much work a randomised test does: a little in the usual run, and more on request.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "heddle/base/types.h"

namespace heddle {

// `usual` times HEDDLE_TEST_SCALE.
inline u64 rounds(u64 usual) {
  const char* scale = std::getenv("HEDDLE_TEST_SCALE");
  return u64(double(usual) * (scale ? std::max(0.0, std::atof(scale)) : 1));
}

// As many of the items, evenly chosen, for tests that compile a kernel for each: the first always, all at a scale of 1.
template <class T>
std::vector<T> chosen(const std::vector<T>& all) {
  const size_t count = std::clamp<size_t>(rounds(all.size()), std::min<size_t>(4, all.size()), all.size());
  std::vector<T> some;
  for (size_t i = 0; i < count; ++i) some.push_back(all[i * all.size() / count]);
  return some;
}

}  // namespace heddle
