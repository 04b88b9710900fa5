#include "heddle/base/digest.h"

#include <fmt/core.h>
#include <xxhash.h>

#include "heddle/base/types.h"

namespace heddle {

std::string digest_of(std::span<const std::string_view> parts) {
  XXH3_state_t* state = XXH3_createState();
  XXH3_128bits_reset(state);
  for (const std::string_view part : parts) {
    const u64 bytes = part.size();
    XXH3_128bits_update(state, &bytes, sizeof bytes);
    XXH3_128bits_update(state, part.data(), part.size());
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace heddle
