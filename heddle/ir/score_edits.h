// The memory of a sequence's slot changes every token's score as it asks (StepSequence::edited). The host sets the planes when the
// sequence is opened; sample counts what it chooses. A mask, of a bit for each token, leaves out all others; the host sets it before each
// step. Read by host and device: no standard headers.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

struct ScoreEdits {
  // Bits of StepSequence::edited: its scores depend on its planes, and on its mask.
  enum Part { kByPlanes = 1, kByMask = 2 };
  // kBias is added to the logit; minus infinity bans the token. kCount is how often the answer has the token. A count of -n bans the
  // token from the first n choices.
  enum Plane { kBias, kCount, kPlanes };

  // Bytes of a mask, in words of 32 tokens.
  static constexpr i32 mask_bytes(i32 vocab) { return 4 * (vocab / 32 + i32(vocab % 32 != 0)); }
};

}  // namespace heddle
