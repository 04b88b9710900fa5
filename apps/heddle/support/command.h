// A command and its arguments. CLI11 stands behind it: in each file that included it, it took most of the time to
// compile.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "heddle/base/types.h"

namespace CLI {
class App;
}

namespace heddle {

// Where an argument goes. Into a bool: --name sets it, without a value.
using FlagValue =
    std::variant<bool*, i32*, uint64_t*, float*, double*, std::string*, std::vector<std::string>*>;

struct ArgumentTraits {
  bool required = false;
  bool shows_default = true;  // help names the value that the field has
  char separator = '\0';      // between several values in one argument
  const char* group = "";     // heading in help; "": that of most
};

// The flag of a setting: "top_p" -> "--top-p".
std::string flag_of(std::string_view name);

class Command {
 public:
  // `about` is the command's line in the program's help.
  Command(CLI::App& program, const std::string& name, const std::string& about);

  // "--name", or "name" for what is told by its place.
  void argument(const std::string& name, const FlagValue& field, const std::string& help,
                const ArgumentTraits& traits = {});
  // Ends the command's help.
  void footer(const std::string& text);
  // Called once the fields are filled.
  void action(std::function<void()> run);
  // Whether the argument was given; for `action`.
  bool given(const std::string& name) const;
  // The arguments that were given but for those left out, as " --name value"; for `action`.
  std::string typed(const std::set<std::string>& left_out) const;

 private:
  CLI::App* command_;  // the program's
};

}  // namespace heddle
