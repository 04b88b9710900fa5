#include "heddle/backend/cuda/compiler/archs.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "heddle/base/error.h"

namespace heddle::cuda {
namespace {

// Within a generation the newest comes last.
constexpr Arch kArchs[] = {{"sm_80", 163}, {"sm_89", 99}, {"sm_90a", 227}, {"sm_100a", 227}, {"sm_120", 99}};

constexpr GpuModel kModels[] = {{"h200", "sm_90a", 132}, {"h100", "sm_90a", 132}, {"a100", "sm_80", 108}};

// "sm_86" -> 8; 0: not such a name.
int generation(std::string_view name) {
  constexpr std::string_view kPrefix = "sm_";
  int number = 0;
  if (name.starts_with(kPrefix))
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), number);
  return number / 10;
}

}  // namespace

std::span<const Arch> known_archs() {
  return kArchs;
}
std::span<const GpuModel> known_models() {
  return kModels;
}

std::string known_arch_names() {
  std::string names;
  for (const Arch& arch : kArchs) names += (names.empty() ? "" : ", ") + std::string(arch.name);
  return names;
}

void require_known_arch(const std::string& name) {
  require(std::ranges::any_of(kArchs, [&](const Arch& arch) { return name == arch.name; }),
          "[cuda] there is no architecture '{}' that heddle knows; it must be one of {}", name,
          known_arch_names());
}

const Arch& arch_of(const std::string& name) {
  const Arch* found = nullptr;
  for (const Arch& arch : kArchs) {
    if (name == arch.name) return arch;
    if (generation(arch.name) == generation(name)) found = &arch;
  }
  if (!found)
    fail(ErrorCode::kUnsupported, "[cuda] heddle has no code for {}; it knows {}", name, known_arch_names());
  return *found;
}

}  // namespace heddle::cuda
