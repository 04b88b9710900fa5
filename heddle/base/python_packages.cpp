#include "heddle/base/python_packages.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace heddle {
namespace {

std::vector<std::string>& folders_of_process() {
  static std::vector<std::string> folders;
  return folders;
}

}  // namespace

void set_python_packages(std::vector<std::string> folders) {
  folders_of_process() = std::move(folders);
}

const std::vector<std::string>& python_packages() {
  return folders_of_process();
}

std::vector<std::string> paths_like(const std::string& folder, const std::string& begin) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().filename().string().starts_with(begin)) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

std::vector<std::string> packaged_folders(const std::vector<std::string>& packages) {
  std::vector<std::string> found;
  for (const std::string& folder : packages) {
    std::vector<std::string> here = paths_like(folder, "heddle_cubins");
    found.insert(found.end(), here.begin(), here.end());
  }
  return found;
}

}  // namespace heddle
