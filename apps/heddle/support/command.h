// A command and its arguments, and the command line of the program, without CLI11 in the interface: CLI11 took most of the
// compile time of each file that included it.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apps/heddle/support/argument.h"
#include "heddle/base/types.h"

namespace CLI {
class App;
}

namespace heddle {

class CommandApp;

// The field that an argument sets. --name sets a bool and takes no value.
using FlagValue =
    std::variant<bool*, i32*, uint64_t*, float*, double*, std::string*, std::vector<std::string>*>;

// The flag of a setting: "top_p" -> "--top-p".
std::string flag_of(std::string_view name);

class Command {
 public:
  // `about` is the command's line in the program's help.
  Command(CLI::App& program, const std::string& name, const std::string& about);

  // "--name", or "name" for a positional argument.
  void argument(const std::string& name, const FlagValue& field, const std::string& help,
                const ArgumentTraits& traits = {});
  // Text at the end of the command's help.
  void footer(const std::string& text);
  // Called when the fields are filled and no file that is read would be written.
  void action(std::function<void()> run);
  // True if the argument was given; for `action`.
  bool given(const std::string& name) const;
  // The given arguments, except those left out, as " --name value"; for `action`.
  std::string typed(const std::set<std::string>& left_out) const;

 private:
  CommandApp* command_;  // the program's
};

// The program as its help shows it.
struct ProgramTexts {
  const char *name, *about, *footer, *version;
};

// Runs the command that the arguments name. False if they only ask for help or the version, which it prints. Throws
// Error(kInvalidArgument) that says what is wrong with them.
bool run_command(int argc, char** argv, const ProgramTexts& texts, void (*add_commands)(CLI::App& program));

}  // namespace heddle
