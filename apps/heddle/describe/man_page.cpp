// Manual pages in the man macros of roff.
#include <algorithm>

#include <fmt/format.h>

#include "apps/heddle/describe/texts.h"

namespace heddle {
namespace {

// Text as roff prints it: no character of it is a request, and hyphens of options stay what they are.
std::string escaped(const std::string& text) {
  std::string made;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (made.empty() || made.back() == '\n')) made += "\\&";
    if (c == '\\')
      made += "\\e";
    else if (c == '-')
      made += "\\-";
    else
      made += c;
  }
  for (size_t at = 0; (at = made.find("…", at)) != std::string::npos;) made.replace(at, 3, "...");
  return made;
}

std::string heading_of(const ArgumentDescription& argument) {
  std::string text;
  for (const std::string& name : argument.names)
    text += (text.empty() ? "" : ", ") + ("\\fB" + escaped(name) + "\\fR");
  if (argument.positional) return "\\fI" + escaped(argument.names[0]) + "\\fR";
  return argument.value.empty() ? text : text + " \\fI" + escaped(argument.value) + "\\fR";
}

std::string entry_of(const ArgumentDescription& argument) {
  std::string text = argument.help;
  if (!argument.default_value.empty()) text += fmt::format(". Default: {}.", argument.default_value);
  if (argument.required && !argument.positional) text += ". It must be given.";
  return ".TP\n" + heading_of(argument) + "\n" + escaped(text) + "\n";
}

std::string synopsis_of(const CommandDescription& command, const std::string& name) {
  std::string text = fmt::format(".SH SYNOPSIS\n.B {}\n[\\fIOPTIONS\\fR]", escaped(name));
  for (const ArgumentDescription& argument : command.arguments) {
    if (!argument.positional) continue;
    const std::string name_of = "\\fI" + escaped(argument.names[0]) + "\\fR";
    text += argument.required ? " " + name_of : " [" + name_of + "]";
  }
  if (!command.commands.empty()) text += " \\fICOMMAND\\fR";
  return text + "\n";
}

std::string options_of(const CommandDescription& command) {
  std::vector<std::string> groups;
  for (const ArgumentDescription& argument : command.arguments)
    if (!argument.positional && std::ranges::find(groups, argument.group) == groups.end())
      groups.push_back(argument.group);
  std::string text;
  for (const std::string& group : groups) {
    text += group == "Options" ? ".SH OPTIONS\n" : fmt::format(".SS {}\n", escaped(group));
    for (const ArgumentDescription& argument : command.arguments)
      if (!argument.positional && argument.group == group) text += entry_of(argument);
  }
  return text;
}

// Lines that stay as they are.
std::string as_it_is(const std::string& heading, const std::string& text) {
  return text.empty() ? "" : fmt::format(".SH {}\n.nf\n{}\n.fi\n", heading, escaped(text));
}

}  // namespace

std::string man_page(const CommandDescription& program, const CommandDescription& command) {
  const bool is_program = command.name == program.name;
  const std::string page = is_program ? program.name : program.name + "-" + command.name;
  const std::string typed = is_program ? program.name : program.name + " " + command.name;
  std::string upper = page;
  std::ranges::transform(upper, upper.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? char(c - 32) : c; });
  std::string text =
      fmt::format(".TH {} 1 \"\" \"{} {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n", escaped(upper),
                  program.name, HEDDLE_VERSION, escaped(page), escaped(command.about));
  text += synopsis_of(command, typed);
  std::string positionals;
  for (const ArgumentDescription& argument : command.arguments)
    if (argument.positional) positionals += entry_of(argument);
  if (!positionals.empty()) text += ".SH ARGUMENTS\n" + positionals;
  text += options_of(command);
  if (!command.commands.empty()) text += ".SH COMMANDS\n";
  for (const CommandDescription& one : command.commands)
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", escaped(one.name), escaped(one.about));
  text += as_it_is("NOTES", command.footer) + ".SH SEE ALSO\n";
  if (!is_program) return text + fmt::format(".BR {} (1)\n", escaped(program.name));
  for (const CommandDescription& one : command.commands)
    text += fmt::format(".BR {} (1){}\n", escaped(program.name + "-" + one.name),
                        one.name == command.commands.back().name ? "" : ",");
  return text;
}

}  // namespace heddle
