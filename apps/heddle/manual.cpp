// heddle manual: writes the manual pages and the shells' completion of this program, for an installation.
#include <filesystem>
#include <memory>
#include <string>

#include "apps/heddle/describe/texts.h"
#include "apps/heddle/support/command.h"
#include "heddle/base/file.h"

namespace heddle {
namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  write_file(path.string(), text);
}

void write_manual(const CLI::App& program, const std::filesystem::path& folder) {
  const CommandDescription all = describe(program);
  write(folder / "man/man1" / (all.name + ".1"), man_page(all, all));
  for (const CommandDescription& command : all.commands)
    write(folder / "man/man1" / (all.name + "-" + command.name + ".1"), man_page(all, command));
  write(folder / "bash-completion/completions" / all.name, bash_completion(all));
  write(folder / "zsh/site-functions" / ("_" + all.name), zsh_completion(all));
  write(folder / "fish/vendor_completions.d" / (all.name + ".fish"), fish_completion(all));
}

}  // namespace

void add_manual(CLI::App& app) {
  auto folder = std::make_shared<std::string>();
  Command command(app, "manual", "Write manual pages and completion for shells, as an installation has them");
  command.argument("folder", folder.get(), "where to write: what becomes share in an installation",
                   {.required = true});
  command.footer(
      "man finds pages below ~/.local/share by itself; so do bash (with bash-completion) and fish. zsh "
      "needs\n"
      "fpath=(~/.local/share/zsh/site-functions $fpath) before compinit.\n"
      "Example: heddle manual ~/.local/share");
  command.action([folder, &app] { write_manual(app, *folder); });
}

}  // namespace heddle
