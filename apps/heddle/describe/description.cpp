#include "apps/heddle/describe/description.h"

#include <algorithm>

#include "apps/heddle/support/command_app.h"

namespace heddle {
namespace {

std::vector<std::string> cut_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(", ", at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 2;
  }
  return parts;
}

ArgumentDescription describe(const CLI::Option& option, const ArgumentTraits& traits) {
  ArgumentDescription made{.help = option.get_description(),
                           .group = option.get_group(),
                           .positional = option.get_positional(),
                           .required = option.get_required(),
                           .repeats = option.get_expected_max() == CLI::detail::expected_max_vector_size,
                           .kind = traits.names,
                           .choices = cut_at_commas(traits.choices)};
  for (const std::string& name : option.get_snames()) made.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) made.names.push_back("--" + name);
  if (made.positional) made.names = {option.get_name(true)};
  if (option.get_items_expected_max() == 0) return made;
  made.value = option.get_type_name();
  made.default_value = option.get_default_str();
  return made;
}

}  // namespace

CommandDescription describe(const CLI::App& program) {
  CommandDescription made{program.get_name(), program.get_description(), program.get_footer(), {}, {}};
  const auto* command = dynamic_cast<const CommandApp*>(&program);
  for (const CLI::Option* option : program.get_options()) {
    const bool known = command != nullptr && command->traits.contains(option);
    made.arguments.push_back(describe(*option, known ? command->traits.at(option) : ArgumentTraits{}));
  }
  for (const CLI::App* one : program.get_subcommands([](const CLI::App*) { return true; }))
    if (!one->get_group().empty()) made.commands.push_back(describe(*one));
  return made;
}

std::string brief_help(const std::string& help) {
  return help.substr(0, help.find(';'));
}

}  // namespace heddle
