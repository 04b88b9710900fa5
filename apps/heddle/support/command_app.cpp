#include "apps/heddle/support/command_app.h"

#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace heddle {
namespace {

constexpr size_t kLine = 110;  // bytes of a line of help
constexpr const char* kCommon = "Options";

}  // namespace

CommandApp::CommandApp(const std::string& name, const std::string& about) : CLI::App(about, name) {
  formatter(std::make_shared<HelpFormatter>());
  set_help_flag("-h,--help", "show the options that most people need");
  set_help_all_flag("--help-all", "show all options");
}

std::string wrapped(const std::string& text, size_t width) {
  std::string made = text;
  size_t begin = 0;
  while (made.size() - begin > width) {
    size_t space = made.rfind(' ', begin + width);
    if (space == std::string::npos || space <= begin) space = made.find(' ', begin);
    if (space == std::string::npos) break;
    made[space] = '\n';
    begin = space + 1;
  }
  return made;
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
         options(app, mode == CLI::AppFormatMode::All) + make_subcommands(app, mode) + "\n" +
         make_footer(app);
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
  return wrapped(option->get_description(), kLine - get_column_width());
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  std::ostringstream out;
  CLI::detail::format_help(out, command->get_display_name(true),
                           wrapped(command->get_description(), kLine - get_column_width()),
                           get_column_width());
  return out.str();
}

}  // namespace heddle
