#include "heddle/base/cache_folder.h"

#include <cstdlib>
#include <vector>

#include <pwd.h>
#include <unistd.h>

#include "heddle/base/error.h"

namespace heddle {
namespace {

// "" for a user without an account, such as a container's.
std::string home_of_account() {
  std::vector<char> text(size_t{1} << 16);
  passwd account{}, *found = nullptr;
  if (::getpwuid_r(::getuid(), &account, text.data(), text.size(), &found) != 0 || !found || !found->pw_dir)
    return "";
  return found->pw_dir;
}

}  // namespace

std::string cache_folder_from(const std::function<std::string(const char* name)>& variable,
                              const std::string& account_home) {
  if (std::string set = variable("HEDDLE_CACHE"); !set.empty()) return set;
  if (const std::string base = variable("XDG_CACHE_HOME"); base.starts_with('/')) return base + "/heddle";
  const std::string home = variable("HOME").empty() ? account_home : variable("HOME");
  if (home.empty())
    fail(ErrorCode::kIo,
         "[cache] there is no folder for it: HOME is not set, and the user {} has no home folder; set "
         "HEDDLE_CACHE or HOME",
         ::getuid());
  return home + "/.cache/heddle";
}

std::string cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  // The account is asked only where it is needed: it may be on another machine.
  return cache_folder_from(variable, variable("HOME").empty() ? home_of_account() : "");
}

}  // namespace heddle
