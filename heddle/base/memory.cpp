#include "heddle/base/memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include <sys/resource.h>

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

// Parses the lines of /proc/self/cgroup: "0::/path" (version 2) or "4:memory:/path" (version 1).
i64 left_in_control_groups() {
  i64 left = kNoLimit;
  std::ifstream text("/proc/self/cgroup");
  for (std::string line; std::getline(text, line);) {
    const size_t second = line.find(':', line.find(':') + 1);
    if (second == std::string::npos) continue;
    const std::string path = line.substr(second + 1) == "/" ? "" : line.substr(second + 1);
    if (line.starts_with("0::"))
      left =
          std::min(left, left_in("/sys/fs/cgroup" + path, "/memory.max", "/memory.current", "inactive_file"));
    if (line.find(":memory:") != std::string::npos)
      left = std::min(left, left_in("/sys/fs/cgroup/memory" + path, "/memory.limit_in_bytes",
                                    "/memory.usage_in_bytes", "total_inactive_file"));
  }
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

}  // namespace heddle
