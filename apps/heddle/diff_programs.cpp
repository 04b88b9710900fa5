// heddle diff-programs: prints how two saved programs differ.
#include <fmt/format.h>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/error.h"
#include "heddle/base/json.h"
#include "heddle/ir/program/compare.h"

namespace heddle {
namespace {

struct DiffProgramsFlags {
  std::string first, second;
  i32 most = 5;
  bool json = false;
};

void run(const DiffProgramsFlags& flags) {
  require(flags.most >= 1, "[diff-programs] --most is {}; must be positive", flags.most);
  const Program first = load_program(flags.first), second = load_program(flags.second);
  const std::string text = print_differences(first, second, size_t(flags.most));
  if (flags.json)
    print_json(Json::object(
        {{"first", flags.first}, {"second", flags.second}, {"same", text.empty()}, {"differences", text}}));
  else
    print(text.empty() ? "the same program, byte for byte\n"
                       : fmt::format("{} | {}\n{}", flags.first, flags.second, text));
  if (text.empty()) return;
  fail(ErrorCode::kInternal, "[diff-programs] {} and {} differ", flags.first, flags.second);
}

}  // namespace

void add_diff_programs(CLI::App& app) {
  auto flags = std::make_shared<DiffProgramsFlags>();
  Command command(app, "diff-programs",
                  "Compare two saved programs: sizes, calls, homes, tiles, instructions");
  command.argument("first", &flags->first, "a .heddle file", {.required = true, .names = Names::kFile});
  command.argument("second", &flags->second, "another", {.required = true, .names = Names::kFile});
  command.argument("--most", &flags->most, "most entries to show of a table");
  command.argument("--json", &flags->json, "print JSON");
  command.footer(
      "Matches buffers and calls by name, and tiles by call and place. The exit code is 1 if the programs\n"
      "differ.\n"
      "Example:\n"
      "  heddle inspect models/storyteller --workers 4 --save a.heddle\n"
      "  heddle inspect models/storyteller --workers 4 --scheduler dag --save b.heddle\n"
      "  heddle diff-programs a.heddle b.heddle");
  command.action([flags] { run(*flags); });
}

}  // namespace heddle
