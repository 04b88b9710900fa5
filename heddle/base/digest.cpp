#include "heddle/base/digest.h"

#include <array>
#include <vector>

#include <fmt/core.h>
#include <xxhash.h>

#include "heddle/base/parallel.h"
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

std::string digest_of_memory(std::span<const std::string_view> parts, int threads) {
  constexpr size_t kPiece = 4 << 20;  // bytes that a thread digests at once
  std::vector<std::string_view> pieces;
  size_t bytes = 0;
  for (const std::string_view part : parts) {
    for (size_t at = 0; at < part.size(); at += kPiece) pieces.push_back(part.substr(at, kPiece));
    bytes += part.size();
  }
  std::vector<XXH128_hash_t> made(pieces.size());
  parallel_for(pieces.size(), bytes <= kPiece ? 1 : threads,
               [&](size_t i) { made[i] = XXH3_128bits(pieces[i].data(), pieces[i].size()); });
  std::vector<u64> sizes;
  for (const std::string_view part : parts) sizes.push_back(part.size());
  const auto text = [](const auto& numbers) {
    return std::string_view(reinterpret_cast<const char*>(numbers.data()),
                            numbers.size() * sizeof numbers[0]);
  };
  return digest_of(std::array{text(sizes), text(made)});
}

}  // namespace heddle
