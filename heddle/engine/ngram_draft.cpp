#include "heddle/engine/ngram_draft.h"

#include <algorithm>

namespace heddle {

std::vector<i32> NgramDraft::guess(std::span<const i32> tokens, i32 most) {
  if (left_ > 0) return {};
  for (size_t size = kLongest; most > 0 && size >= kShortest; --size) {
    if (tokens.size() <= size) continue;
    const auto last = tokens.last(size), before = tokens.first(tokens.size() - 1);
    const auto found = std::ranges::find_end(before, last);
    if (found.empty()) continue;
    const auto follow = std::span(found.end(), tokens.end());
    const auto count = std::min(follow.size(), size_t(most));
    return {follow.begin(), follow.begin() + i64(count)};
  }
  left_ = kUnknown;
  return {};
}

void NgramDraft::learn(size_t guessed, size_t right) {
  if (guessed == 0) return;
  balance_ = std::min(balance_ + float(right) - kCost, kPatience);
  if (right == guessed) pause_ = kPause;
  if (balance_ > -kPatience) return;
  balance_ = 0, left_ = pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
}

}  // namespace heddle
