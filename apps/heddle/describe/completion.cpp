// Completion for bash, zsh and fish. Options complete by name; values as the words that they may be, as files or as
// folders.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/heddle/describe/texts.h"

namespace heddle {
namespace {

// The first clause of a help text, for a list.
std::string brief_help(const std::string& help) {
  return help.substr(0, help.find(';'));
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

// Between single quotes of a shell. In fish, a backslash stands for itself only when it is doubled.
std::string quoted(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}
std::string quoted_for_fish(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string words_of(const CommandDescription& command) {
  std::string words;
  for (const ArgumentDescription& argument : command.arguments)
    for (const std::string& name : argument.names)
      if (!argument.positional) words += (words.empty() ? "" : " ") + name;
  return words;
}

std::string names_of_commands(const CommandDescription& program) {
  std::string names;
  for (const CommandDescription& command : program.commands)
    names += (names.empty() ? "" : " ") + command.name;
  return names;
}

// The words that a value is one of; none where it may be another, too, that can be completed.
std::string words_of_choices(const ArgumentDescription& argument) {
  const bool only_words = argument.choices.empty() && argument.kind == Names::kAnything;
  return fmt::format("{}", fmt::join(only_words ? argument.also : argument.choices, " "));
}

std::string words_also(const ArgumentDescription& argument) {
  return fmt::format("{}", fmt::join(argument.also, " "));
}

// The ways of a shell to complete a value that is not one of a few words.
struct Completes {
  const char *anything, *folder, *file;

  const char* value_of(const ArgumentDescription& argument) const {
    switch (argument.kind) {
      case Names::kAnything:
        return anything;
      case Names::kFolder:
        return folder;
      default:
        return file;
    }
  }
};

// The command by which bash completes a value.
std::string bash_values(const ArgumentDescription& argument) {
  if (const std::string words = words_of_choices(argument); !words.empty())
    return "_heddle_words " + quoted(words);
  const std::string values = Completes{":", "_heddle_paths -d", "_heddle_paths -f"}.value_of(argument);
  return argument.also.empty() ? values : fmt::format("{} {}", values, quoted(words_also(argument)));
}

// The action by which zsh completes a value, in a specification of _arguments.
std::string zsh_values(const ArgumentDescription& argument) {
  if (const std::string words = words_of_choices(argument); !words.empty()) return fmt::format("({})", words);
  const std::string values = Completes{" ", "_files -/", "_files"}.value_of(argument);
  return argument.also.empty() ? values : fmt::format("{{compadd {}; {}}}", words_also(argument), values);
}

std::string fish_values(const ArgumentDescription& argument) {
  if (const std::string words = words_of_choices(argument); !words.empty())
    return " -x -a " + quoted_for_fish(words);
  return Completes{" -x", " -x -a '(__fish_complete_directories)'", " -r -F"}.value_of(argument);
}

// The words of a positional argument.
std::string fish_words(const ArgumentDescription& argument) {
  if (const std::string words = words_of_choices(argument); !words.empty())
    return " -a " + quoted_for_fish(words);
  const std::string also = words_also(argument);
  if (argument.kind == Names::kFolder)
    return fmt::format(" -a '(__fish_complete_directories){}'", also.empty() ? "" : " " + also);
  return also.empty() ? " -F" : fmt::format(" -F -a '{}'", also);
}

std::string zsh_argument(const ArgumentDescription& argument, int& position) {
  const std::string help =
      replaced(replaced(replaced(replaced(brief_help(argument.help), "\\", "\\\\"), "[", "\\["), "]", "\\]"),
               ":", "\\:");
  if (argument.positional)
    return "    " + quoted(fmt::format("{}:{}:{}", ++position, argument.names[0], zsh_values(argument))) +
           " \\\n";
  std::string text;
  for (const std::string& name : argument.names) {
    const std::string value =
        argument.value.empty() ? "" : fmt::format(":{}:{}", argument.value, zsh_values(argument));
    text += "    " +
            quoted(fmt::format("{}{}{}[{}]{}", argument.repeats ? "*" : "", name,
                               argument.value.empty() || !name.starts_with("--") ? "" : "=", help, value)) +
            " \\\n";
  }
  return text;
}

constexpr const char* kBashHelpers =
    R"(_heddle_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current"); }
_heddle_paths() {  # $2: words besides
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$current"; compgen -W "${2:-}" -- "$current")
}
_heddle() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}
  COMPREPLY=()
  # bash cuts --name=value into three words.
  if [[ $current == = ]]; then
    current=
  elif [[ $before == = && $COMP_CWORD -ge 3 ]]; then
    before=${COMP_WORDS[COMP_CWORD-2]}
  fi
)";

}  // namespace

std::string bash_completion(const CommandDescription& program) {
  std::string text = "# Completion of heddle for bash.\n" + std::string(kBashHelpers);
  text += fmt::format("  if ((COMP_CWORD == 1)); then\n    _heddle_words {}\n    return\n  fi\n",
                      quoted(names_of_commands(program) + " " + words_of(program)));
  text += "  case \"$command $before\" in\n";
  for (const CommandDescription& command : program.commands)
    for (const ArgumentDescription& argument : command.arguments) {
      if (argument.value.empty() || argument.positional) continue;
      std::string patterns;
      for (const std::string& name : argument.names)
        patterns += (patterns.empty() ? "" : " | ") + quoted(command.name + " " + name);
      text += fmt::format("    {}) {}; return ;;\n", patterns, bash_values(argument));
    }
  text += "  esac\n  case \"$command\" in\n";
  for (const CommandDescription& command : program.commands) {
    std::string otherwise = ":";
    for (const ArgumentDescription& argument : command.arguments)
      if (argument.positional && otherwise == ":") otherwise = bash_values(argument);
    text += fmt::format(
        "    {})\n      if [[ $current == -* ]]; then\n        _heddle_words {}\n      else\n        {}\n    "
        "  "
        "fi\n      ;;\n",
        command.name, quoted(words_of(command)), otherwise);
  }
  return text + "  esac\n}\ncomplete -F _heddle heddle\n";
}

std::string zsh_completion(const CommandDescription& program) {
  std::string text =
      "#compdef heddle\n# Completion of heddle for zsh.\n_heddle() {\n  local -a commands\n  commands=(\n";
  for (const CommandDescription& command : program.commands)
    text +=
        fmt::format("    {}\n", quoted(command.name + ":" + replaced(brief_help(command.about), ":", "\\:")));
  text +=
      "  )\n  if (( CURRENT == 2 )); then\n    _describe -t commands command commands\n    return\n  fi\n"
      "  local command=${words[2]}\n  shift words\n  (( CURRENT-- ))\n  case $command in\n";
  for (const CommandDescription& command : program.commands) {
    text += fmt::format("  {})\n    _arguments \\\n", command.name);
    int position = 0;
    for (const ArgumentDescription& argument : command.arguments)
      text += "  " + zsh_argument(argument, position);
    text += "      && return 0\n    ;;\n";
  }
  return text + "  esac\n}\n_heddle \"$@\"\n";
}

std::string fish_completion(const CommandDescription& program) {
  std::string text = "# Completion of heddle for fish.\ncomplete -c heddle -f\n";
  for (const CommandDescription& command : program.commands)
    text += fmt::format("complete -c heddle -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        quoted_for_fish(brief_help(command.about)));
  for (const CommandDescription& command : program.commands)
    for (const ArgumentDescription& argument : command.arguments) {
      text += fmt::format("complete -c heddle -n '__fish_seen_subcommand_from {}'", command.name);
      for (const std::string& name : argument.names)
        if (!argument.positional)
          text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      const std::string values = fish_values(argument);
      if (argument.positional)
        text += fish_words(argument);
      else if (!argument.value.empty())
        text += values;
      text += " -d " + quoted_for_fish(brief_help(argument.help)) + "\n";
    }
  return text;
}

}  // namespace heddle
