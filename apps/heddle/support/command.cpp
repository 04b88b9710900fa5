#include "apps/heddle/support/command.h"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "apps/heddle/support/command_app.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/error.h"
#include "heddle/base/json.h"

namespace heddle {
namespace {

// The text of a person as an error may show it.
std::string shown(const std::string& text) {
  return brief(Json(text));
}

// CLI11 reads a text such as 2^64, 010 or "" as some other number, so this reads it first, and hands it the
// digits. Returns what is wrong.
template <std::integral T>
std::string read_number(std::string& text) {
  using Limits = std::numeric_limits<T>;
  T number = 0;
  const char *const begin = text.data() + (text.starts_with('+') ? 1 : 0), *const end =
                                                                               text.data() + text.size();
  const auto [at, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || at != end) {
    return fmt::format("is {}; a whole number from {} to {} is expected", shown(text), Limits::min(),
                       Limits::max());
  }
  text = std::to_string(number);
  return "";
}

template <std::floating_point T>
std::string read_number(std::string& text) {
  T number = 0;
  const char *const begin = text.data() + (text.starts_with('+') ? 1 : 0), *const end =
                                                                               text.data() + text.size();
  const auto [at, error] = std::from_chars(begin, end, number);
  if (error == std::errc() && at == end) return "";
  return fmt::format("is {}; a number within the range of floats is expected", shown(text));
}

template <class T>
CLI::Option* add(CLI::App& command, const std::string& name, T& field, const std::string& help) {
  if constexpr (std::is_same_v<T, bool>) return command.add_flag(name, field, help);
  CLI::Option* option = command.add_option(name, field, help);
  if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
    option->transform(CLI::Validator(read_number<T>, ""));
  return option;
}

// No argument may name a file to write that another one reads, or writes too.
void require_other_outputs(const CommandApp& command) {
  std::vector<std::string> read;
  std::map<std::string, std::string> written;  // path -> argument
  for (const auto& [option, traits] : command.traits) {
    if (option->count() == 0 || traits.names == Names::kAnything) continue;
    if (traits.names != Names::kNewFile) {
      read.insert(read.end(), option->results().begin(), option->results().end());
      continue;
    }
    const auto [same, fresh] = written.emplace(option->results().back(), option->get_name());
    require(fresh, "[{}] is {}, and so is {}; each file needs its own name", option->get_name(), same->first,
            same->second);
  }
  for (const auto& [path, name] : written) require_none_of(path, read, name);
}

}  // namespace

std::string flag_of(std::string_view name) {
  std::string flag = "--" + std::string(name);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

Command::Command(CLI::App& program, const std::string& name, const std::string& about)
    : command_(new CommandApp(name, about)) {
  program.add_subcommand(CLI::App_p(command_));
}

void Command::argument(const std::string& name, const FlagValue& field, const std::string& help,
                       const ArgumentTraits& traits) {
  CLI::Option* option = std::visit([&](auto* to) { return add(*command_, name, *to, help); }, field);
  command_->traits[option] = traits;
  if (traits.names != Names::kAnything)
    option->type_name(traits.names == Names::kFolder ? "FOLDER"
                      : traits.names == Names::kPath ? "PATH"
                                                     : "FILE");
  option->required(traits.required)->delimiter(traits.separator);
  const bool is_one_value =
      !std::holds_alternative<bool*>(field) && !std::holds_alternative<std::vector<std::string>*>(field);
  if (traits.shows_default && is_one_value) option->capture_default_str();
  if (*traits.group) option->group(traits.group);
}

void Command::footer(const std::string& text) {
  command_->footer(text);
}

void Command::action(std::function<void()> run) {
  command_->callback([command = command_, run = std::move(run)] {
    require_other_outputs(*command);
    run();
  });
}

void Command::hide() {
  command_->group("");
}

bool Command::given(const std::string& name) const {
  return command_->count(name) > 0;
}

std::string Command::typed(const std::set<std::string>& left_out) const {
  std::string text;
  for (const CLI::Option* option : command_->get_options()) {
    const bool is_flag = option->get_items_expected_max() == 0;
    if (option->count() == 0 || left_out.contains(option->get_name())) continue;
    if (is_flag || !option->get_positional()) text += " " + option->get_name();
    if (!is_flag)
      for (const std::string& value : option->results()) text += " " + value;
  }
  return text;
}

}  // namespace heddle
