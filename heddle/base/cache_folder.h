// The folder of files that can be made again: compiled programs.
#pragma once

#include <functional>
#include <string>

namespace heddle {

// $HEDDLE_CACHE, else $XDG_CACHE_HOME/heddle, else ~/.cache/heddle. As the XDG specification wants, a relative
// $XDG_CACHE_HOME is ignored. Throws Error when none of them is there.
std::string cache_folder();

// Does so for given variables ("": not set), and the home folder of the user's account.
std::string cache_folder_from(const std::function<std::string(const char* name)>& variable,
                              const std::string& account_home);

}  // namespace heddle
