// Guesses how an answer goes on: where its last tokens stood before, in the prompt or in the answer, the same tokens may follow again.
// Verified guesses make several tokens a step (Batcher); where they turn out wrong, it gives none for a while.
#pragma once

#include <span>
#include <vector>

#include "heddle/base/types.h"

namespace heddle {

class NgramDraft {
 public:
  // At most `most` tokens that may follow `tokens`; empty where none are likely, and then for pause() tokens.
  std::vector<i32> guess(std::span<const i32> tokens, i32 most);
  // So many of the last guess were right.
  void learn(size_t guessed, size_t right);
  void pass() { left_ -= left_ > 0; }  // a token more
  i32 pause() const { return left_; }

 private:
  static constexpr size_t kLongest = 4, kShortest = 2;  // tokens that must have stood there before
  // A step with guesses costs so many tokens more than one without, and so many may be lost before a pause.
  static constexpr float kCost = 0.5f, kPatience = 4;
  static constexpr i32 kPause = 32, kLongestPause = 1024;  // tokens
  // Tokens until the next look where nothing was found: a launch of several steps costs less than they do one by one.
  static constexpr i32 kUnknown = 8;

  float balance_ = 0;
  i32 pause_ = kPause, left_ = 0;  // the next pause, and what is left of this one
};

}  // namespace heddle
