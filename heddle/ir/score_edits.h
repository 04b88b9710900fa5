// The memory of a sequence's slot changes every token's score as it asks (StepSequence::edited). The host sets it when the sequence is
// opened; sample counts what it chooses. Read by host and device: no standard headers.
#pragma once

namespace heddle {

struct ScoreEdits {
  // kBias is added to the logit; minus infinity bans the token. kCount is how often the answer has the token. A count of -n bans the
  // token from the first n choices.
  enum Plane { kBias, kCount, kPlanes };
};

}  // namespace heddle
