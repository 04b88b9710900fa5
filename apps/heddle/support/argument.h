// Describes an argument of a command for help, completion and checks.
#pragma once

#include <string>

namespace heddle {

// The kind of thing that the text of an argument names.
enum class Names {
  kAnything,
  kFile,     // that is read
  kFolder,   // a model's; its name on the hub stands for its folder in the hub's cache
  kPath,     // one of these
  kNewFile,  // that is written; it must be none of those that are read
};

struct ArgumentTraits {
  bool required = false;
  bool shows_default = true;  // help names the default value
  char separator = '\0';      // between several values in one argument
  const char* group = "";     // heading in the full help; "": one that most people need, which --help shows
  Names names = Names::kAnything;
  std::string choices = {};  // "threads, reference"; "": any value
  std::string also = {};     // words that completion offers besides the files or folders
  // The flag that took its place: the argument is in no help, and a command line with it is refused.
  const char* instead = "";
};

}  // namespace heddle
