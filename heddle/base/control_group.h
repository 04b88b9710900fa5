// The control groups of this process: limits that a container or a service manager sets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle {

struct ControlGroupFiles {
  std::string list = "/proc/self/cgroup", mount = "/sys/fs/cgroup";
};

struct ControlGroups {
  // Folders of the process's group and of its parents, which limit it too. A container may see only some of them.
  std::vector<std::string> version2, version1;
};

// Finds the groups that have a controller such as "cpu" or "memory".
ControlGroups control_groups(std::string_view controller, const ControlGroupFiles& files = {});

// The cores that the tightest CPU quota allows, such as 1.5, and its group's folder. 0: there is none.
struct CpuQuota {
  double cores = 0;
  std::string group;
};
CpuQuota cpu_quota(const ControlGroupFiles& files = {});

}  // namespace heddle
