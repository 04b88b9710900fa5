// The only file that includes CLI11: its header takes seconds to compile wherever it is included, and its functions as long
// again. Holds what CLI11 keeps of a command's arguments, how help shows them, and how they are read.
#include "apps/heddle/support/command.h"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <sstream>
#include <type_traits>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>
#include <unistd.h>

#include "apps/heddle/support/columns.h"
#include "apps/heddle/support/description.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/error.h"
#include "heddle/base/json.h"
#include "heddle/base/near_names.h"
#include "heddle/model/hf/hub_cache.h"

namespace heddle {

class CommandApp : public CLI::App {
 public:
  CommandApp(const std::string& name, const std::string& about);

  std::map<const CLI::Option*, ArgumentTraits> traits;  // by argument; help flags have none
  std::vector<std::string*> models;                     // fields of arguments that name one
};

namespace {

constexpr const char* kCommon = "Options";

// Columns of a line of help.
size_t help_columns() {
  constexpr size_t kMost = 110;
  return ::isatty(STDOUT_FILENO) != 0 ? std::min(output_columns(), kMost) : kMost;
}

// Help shows the options that most people need; the full help shows all, in groups. Long lines are broken.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;

 private:
  std::string options(const CLI::App* app, bool all) const;
};

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  return wrapped(make_description(app), help_columns()) + make_usage(app, std::move(name)) +
         make_positionals(app) + options(app, mode == CLI::AppFormatMode::All) + make_subcommands(app, mode) +
         "\n" + wrapped(filled(make_footer(app)), help_columns());
}

std::string HelpFormatter::options(const CLI::App* app, bool all) const {
  std::string made;
  size_t hidden = 0;
  for (const std::string& group : app->get_groups()) {
    const std::vector<const CLI::Option*> own = app->get_options(
        [&](const CLI::Option* option) { return option->get_group() == group && option->nonpositional(); });
    if (group.empty() || own.empty()) continue;
    if (!all && group != kCommon)
      hidden += own.size();
    else
      made += make_group(group, false, own);
  }
  if (hidden > 0)
    made += fmt::format("\nheddle {} --help-all shows {} more options.\n", app->get_name(), hidden);
  return made;
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  return wrapped(option->get_description(), help_columns() - get_column_width());
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  std::ostringstream out;
  CLI::detail::format_help(out, command->get_display_name(true),
                           wrapped(command->get_description(), help_columns() - get_column_width()),
                           get_column_width());
  return out.str();
}

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

// Says on stderr which snapshot of the hub's cache a model is.
std::string model_path(const std::string& given) {
  const FoundModel found = find_model(given);
  if (!found.said.empty()) std::fprintf(stderr, "[%s]\n", found.said.c_str());
  return found.path;
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
                           .choices = cut_at_commas(traits.choices),
                           .also = cut_at_commas(traits.also)};
  for (const std::string& name : option.get_snames()) made.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) made.names.push_back("--" + name);
  if (made.positional) made.names = {option.get_name(true)};
  if (option.get_items_expected_max() == 0) return made;
  made.value = option.get_type_name();
  made.default_value = option.get_default_str();
  return made;
}

// Words that other programs have for commands, and what heddle has.
struct OtherWord {
  const char *word, *here;
};
constexpr OtherWord kOtherWords[] = {
    {"run", "heddle chat MODEL talks with a model, heddle generate MODEL continues a text"},
    {"complete", "heddle generate MODEL continues a text"},
    {"pull", "a model is a folder: hf download NAME --local-dir FOLDER"},
    {"download", "a model is a folder: hf download NAME --local-dir FOLDER"},
    {"list", "heddle models lists the families of models that run"},
    {"ls", "heddle models lists the families of models that run"},
    {"info", "heddle env shows the machine, heddle inspect MODEL a model"},
    {"perplexity", "heddle eval MODEL --text FILE measures it"},
    {"man", "heddle manual FOLDER writes the manual pages"},
    {"completion", "heddle manual FOLDER writes completion for bash, zsh and fish"},
};

// The command of this name. CLI11 reports an unknown one only as "one is required".
CLI::App* find_command(CLI::App& app, const std::string& name) {
  std::vector<std::string> known;
  for (CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == name) return command;
    if (!command->get_group().empty()) known.push_back(command->get_name());
  }
  for (const OtherWord& other : kOtherWords)
    require(name != other.word, "'{}' is not a command; {}", name, other.here);
  const std::string meant = did_you_mean(name, known);
  require(meant.empty(), "'{}' is not a command{}", name, meant);
  fail(ErrorCode::kInvalidArgument, "'{}' is not a command; there are {}; see heddle --help", name,
       fmt::join(known, ", "));
}

// The flags of a command that may have been meant.
std::string meant_flags(const CLI::App& command, const std::string& flag) {
  std::vector<std::string> all, begin;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) {
      all.push_back("--" + name);
      // "-p" may stand for the one that most people need.
      if (flag.size() == 2 && name[0] == flag[1] && option->get_group() == kCommon)
        begin.push_back("--" + name);
    }
  if (begin.empty()) return did_you_mean(flag, all);
  return fmt::format("; did you mean {}?", begin.front());
}

// Says which of the arguments that were not taken the command does not have. CLI11 takes none after a word too many.
void refuse_unknown(const CLI::App& command, const std::vector<std::string>& left, const std::string& typed) {
  for (const std::string& word : left) {
    const std::string flag = word.substr(0, word.find('='));
    const bool is_flag =
        flag.size() > 1 && flag[0] == '-' && flag != "--" && (flag[1] < '0' || flag[1] > '9');
    if (!is_flag || command.get_option_no_throw(flag) != nullptr) continue;
    const std::string meant = meant_flags(command, flag);
    require(meant.empty(), "unknown flag {}{}", flag, meant);
    fail(ErrorCode::kInvalidArgument, "unknown flag {}; see {} {}", flag, typed,
         command.get_help_all_ptr() ? "--help-all" : "--help");
  }
  if (left.empty()) return;
  const CLI::Option* prompt = command.get_option_no_throw("--prompt");
  fail(ErrorCode::kInvalidArgument, "{} is not expected{}; see {} --help", shown(left.front()),
       prompt ? "; a text goes between quotes, after --prompt" : "", typed);
}

// `heddle help X` is `heddle X --help`, and `heddle version` is `heddle --version`.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) return {"--help"};
  if (words[0] == "version") words[0] = "--version";
  if (words[0] == "help")
    words.erase(words.begin()), words.resize(std::min<size_t>(words.size(), 1)), words.push_back("--help");
  return words;
}

}  // namespace

CommandApp::CommandApp(const std::string& name, const std::string& about) : CLI::App(about, name) {
  formatter(std::make_shared<HelpFormatter>());
  set_help_flag("-h,--help", "show the options that most people need");
  set_help_all_flag("--help-all", "show all options");
}

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
  const bool is_model = traits.names == Names::kFolder || traits.names == Names::kPath;
  if (auto* const text = std::get_if<std::string*>(&field); text && is_model)
    command_->models.push_back(*text);
  if (*traits.group) option->group(traits.group);
  if (*traits.instead) {
    option->group("");
    option->each([name, traits](const std::string&) {
      fail(ErrorCode::kInvalidArgument, "{} is now {}", name, traits.instead);
    });
  }
}

void Command::footer(const std::string& text) {
  command_->footer(text);
}

void Command::action(std::function<void()> run) {
  command_->callback([command = command_, run = std::move(run)] {
    require_other_outputs(*command);
    for (std::string* model : command->models) *model = model_path(*model);
    run();
  });
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

CommandDescription describe(const CLI::App& program) {
  CommandDescription made{program.get_name(), program.get_description(), program.get_footer(), {}, {}};
  const auto* command = dynamic_cast<const CommandApp*>(&program);
  for (const CLI::Option* option : program.get_options()) {
    if (option->get_group().empty()) continue;
    const bool known = command != nullptr && command->traits.contains(option);
    made.arguments.push_back(describe(*option, known ? command->traits.at(option) : ArgumentTraits{}));
  }
  for (const CLI::App* one : program.get_subcommands([](const CLI::App*) { return true; }))
    if (!one->get_group().empty()) made.commands.push_back(describe(*one));
  return made;
}

bool run_command(int argc, char** argv, const ProgramTexts& texts, void (*add_commands)(CLI::App& program)) {
  CLI::App program(texts.about, texts.name);
  program.footer(texts.footer);
  program.formatter(std::make_shared<HelpFormatter>());
  program.require_subcommand(1);
  program.set_version_flag("-v,--version", texts.version);
  add_commands(program);
  std::vector<std::string> words = words_of(argc, argv);
  const CLI::App* command = words[0].starts_with('-') ? nullptr : find_command(program, words[0]);
  const CLI::App& asked = command ? *command : program;
  const std::string typed = command ? program.get_name() + " " + command->get_name() : program.get_name();
  try {
    std::ranges::reverse(words);  // as CLI11 wants them
    program.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error), false;  // --help, --version
    refuse_unknown(asked, program.remaining(true), typed);
    fail(ErrorCode::kInvalidArgument, "{}; see {} --help", error.what(), typed);
  }
  return true;
}

}  // namespace heddle
