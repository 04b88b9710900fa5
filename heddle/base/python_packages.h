// Packages of the Python interpreter that heddle runs in, which may bring compiled code and results of tuning.
#pragma once

#include <string>
#include <vector>

namespace heddle {

// Names the folders of packages, as sys.path has them, before anything is first looked for there.
void set_python_packages(std::vector<std::string> folders);
const std::vector<std::string>& python_packages();  // none in a process without an interpreter

// The paths in a folder whose names begin so, sorted. A folder that cannot be read has none.
std::vector<std::string> paths_like(const std::string& folder, const std::string& begin);
// The folders that `python -m heddle.package` made: PACKAGES/heddle_cubins*, in the order of the packages.
std::vector<std::string> packaged_folders(const std::vector<std::string>& packages);

}  // namespace heddle
