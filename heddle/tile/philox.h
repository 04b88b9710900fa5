// Philox 4x32-10: random words as a function of a key and a counter (Salmon et al., 2011).
// Read by host and device: no standard headers.
#pragma once

#include "heddle/base/types.h"

namespace heddle {

struct PhiloxWords {
  u32 at[4];
};

inline PhiloxWords philox(u64 key, PhiloxWords counter) {
  u32 key0 = u32(key), key1 = u32(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const u64 first = u64(0xD2511F53u) * counter.at[0], second = u64(0xCD9E8D57u) * counter.at[2];
    counter = {{u32(second >> 32) ^ counter.at[1] ^ key0, u32(second),
                u32(first >> 32) ^ counter.at[3] ^ key1, u32(first)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// A float in [0, 1), a multiple of 2^-24: draw number `draw` of a sequence with this seed.
inline float uniform_draw(u64 seed, u32 draw) {
  return float(philox(seed, {{draw, 0, 0, 0}}).at[0] >> 8) * (1.0f / 16777216.0f);
}

}  // namespace heddle
