#include "heddle/base/memory.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include <sys/resource.h>

#include "heddle/base/control_group.h"
#include "heddle/base/error.h"

namespace heddle {
namespace {

constexpr i64 kNoLimit = std::numeric_limits<i64>::max();

// Reads the number after `name` in a file of lines such as "MemAvailable: 123 kB"; -1 when there is none.
i64 number_in(const std::string& file, const std::string& name) {
  std::ifstream text(file);
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string word;
    i64 number = -1;
    if (words >> word >> number && word == name) return number;
  }
  return -1;
}

// Reads a file that holds one number; kNoLimit when it says "max" or does not exist.
i64 number_of(const std::string& file) {
  std::ifstream text(file);
  i64 number = kNoLimit;
  return text >> number ? number : kNoLimit;
}

// Bytes that a control group has left. Inactive file pages count as free, because the group gives them back
// on demand.
i64 left_in(const std::string& folder, const char* limit_file, const char* use_file, const char* given_back) {
  const i64 limit = number_of(folder + limit_file);
  if (limit == kNoLimit) return kNoLimit;
  const i64 use = number_of(folder + use_file);
  if (use == kNoLimit) return kNoLimit;
  return limit - use + std::max(i64{0}, number_in(folder + "/memory.stat", given_back));
}

i64 left_in_control_groups() {
  const ControlGroups groups = control_groups("memory");
  i64 left = kNoLimit;
  for (const std::string& folder : groups.version2)
    left = std::min(left, left_in(folder, "/memory.max", "/memory.current", "inactive_file"));
  for (const std::string& folder : groups.version1)
    left = std::min(
        left, left_in(folder, "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"));
  return left;
}

i64 left_of_address_space() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  const i64 used = number_in("/proc/self/status", "VmSize:");
  return used < 0 ? kNoLimit : i64(limit.rlim_cur) - used * 1024;
}

}  // namespace

i64 available_memory() {
  const i64 free = number_in("/proc/meminfo", "MemAvailable:");
  const i64 left =
      std::min({free < 0 ? kNoLimit : free * 1024, left_in_control_groups(), left_of_address_space()});
  return left == kNoLimit ? -1 : std::max(left, i64{0});
}

void fail_memory(size_t bytes, std::string_view what) {
  const i64 free = available_memory();
  fail(ErrorCode::kUnsupported,
       "[memory] {} for {} cannot be had{}; a smaller --max-context, fewer sequences, fewer threads or a "
       "model with smaller elements need less",
       bytes > 0 ? fmt::format("{} bytes", bytes) : "memory", what,
       free >= 0 ? fmt::format(": {} bytes are free", free) : "");
}

namespace {
std::atomic<size_t> refused = 0;  // a worker's exception is looked at by another thread
}

void note_refused(size_t bytes) noexcept {
  refused = bytes;
}

size_t take_refused() noexcept {
  return refused.exchange(0);
}

}  // namespace heddle
