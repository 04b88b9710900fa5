// Sets the work of a randomised test: a little in the usual run, and more on request.
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

// Some of the items, evenly chosen, for tests that compile a kernel for each: HEDDLE_TEST_SCALE of them, or of `most` if
// there are more; at least two, the first among them.
template <class T>
std::vector<T> chosen(const std::vector<T>& all, size_t most = ~size_t{0}) {
  const size_t wanted = rounds(std::min(all.size(), most));
  const size_t count = std::clamp<size_t>(wanted, std::min<size_t>(2, all.size()), all.size());
  std::vector<T> some;
  for (size_t i = 0; i < count; ++i) some.push_back(all[i * all.size() / count]);
  return some;
}

}  // namespace heddle
