// The program's commands and their arguments as data. Manual pages and shell completion are written from it (describe/texts.h).
#pragma once

#include <string>
#include <vector>

#include "apps/heddle/support/argument.h"

namespace CLI {
class App;
}

namespace heddle {

struct ArgumentDescription {
  std::vector<std::string> names;  // "-h", "--help"; of a positional argument, "model"
  std::string value;               // "TEXT", "FILE"; "": it takes none
  std::string default_value;       // "": none is shown
  std::string help, group;
  bool positional = false, required = false, repeats = false;
  Names kind = Names::kAnything;
  std::vector<std::string> choices;  // values; none: any
  std::vector<std::string> also;     // words besides files or folders
};

struct CommandDescription {
  std::string name, about, footer;
  std::vector<ArgumentDescription> arguments;
  std::vector<CommandDescription> commands;  // commands of the program, without hidden ones
};

CommandDescription describe(const CLI::App& program);

}  // namespace heddle
