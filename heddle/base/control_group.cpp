#include "heddle/base/control_group.h"

#include <algorithm>
#include <fstream>

namespace heddle {
namespace {

// "/a/b" -> mount/a/b, mount/a, mount.
void add_folders(std::vector<std::string>& folders, const std::string& mount, std::string path) {
  while (path.size() > 1) {
    folders.push_back(mount + path);
    path.resize(path.rfind('/'));
  }
  folders.push_back(mount);
}

bool contains(std::string_view list, std::string_view wanted) {
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (list.substr(at, end - at) == wanted) return true;
    at = end + 1;
  }
  return false;
}

// Reads up to two numbers, and returns how many there were: none where a file is missing or says "max".
int read_numbers(const std::string& file, double& first, double& second) {
  std::ifstream text(file);
  if (!(text >> first)) return 0;
  return text >> second ? 2 : 1;
}

}  // namespace

// Lines of the list are "0::/path" (version 2) or "4:cpu,cpuacct:/path" (version 1).
ControlGroups control_groups(std::string_view controller, const ControlGroupFiles& files) {
  ControlGroups groups;
  std::ifstream text(files.list);
  for (std::string line; std::getline(text, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || line.substr(second + 1, 1) != "/") continue;
    const std::string path = line.substr(second + 1),
                      controllers = line.substr(first + 1, second - first - 1);
    if (line.starts_with("0::")) add_folders(groups.version2, files.mount, path);
    if (!contains(controllers, controller)) continue;
    add_folders(groups.version1, files.mount + "/" + controllers, path);
    const std::string alone =
        files.mount + "/" + std::string(controller);  // a link, where several are mounted together
    if (controllers != controller) add_folders(groups.version1, alone, path);
  }
  return groups;
}

CpuQuota cpu_quota(const ControlGroupFiles& files) {
  CpuQuota tightest;
  const auto take = [&](const std::string& folder, double time, double period) {
    if (time <= 0 || period <= 0 || (tightest.cores > 0 && tightest.cores <= time / period)) return;
    tightest = {time / period, folder};
  };
  const ControlGroups groups = control_groups("cpu", files);
  double time = 0, period = 0, none = 0;
  for (const std::string& folder : groups.version2)
    if (read_numbers(folder + "/cpu.max", time, period) == 2) take(folder, time, period);
  for (const std::string& folder : groups.version1)
    if (read_numbers(folder + "/cpu.cfs_quota_us", time, none) > 0 &&
        read_numbers(folder + "/cpu.cfs_period_us", period, none) > 0)
      take(folder, time, period);
  return tightest;
}

}  // namespace heddle
