// Names of the buffers that say what sequences ask of scores (ir/score_edits.h): kScoreEdits, and their masks.
#pragma once

#include <string_view>

#include "heddle/engine/model.h"

namespace heddle {

constexpr const char* kScoreMasks = "sample.masks";
inline bool is_of_scores(std::string_view buffer) {
  return buffer == kScoreEdits || buffer == kScoreMasks;
}

}  // namespace heddle
