// Cuts the scores of a vocabulary for the choice of a token: into slices of a fixed size, whose sorted scores
// are cut into blocks. The sizes are constants, so that no sum depends on the number of workers. Read by host
// and device: no standard headers.
#pragma once

namespace heddle {

struct ScoreSlices {
  static constexpr int kSize = 1024;  // scores of a slice; the last may have fewer
  static constexpr int kBlock = 32, kBlocks = kSize / kBlock;
  // The parts of a slice: its best score, the token that has it, and the sum of all weights, e^((score - best) / temperature).
  enum Part { kScore, kToken, kSum, kUnused, kParts };
  // The parts of a block: its best and its least score, the sum of its weights, and the number of scores above minus infinity.
  enum Plane { kFirst, kLast, kWeight, kCount, kPlanes };

  static constexpr int number(int vocab) { return vocab / kSize + (vocab % kSize > 0); }
};

}  // namespace heddle
