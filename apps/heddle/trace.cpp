// heddle trace: summarises a recorded run, or converts it to other formats.
#include <memory>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/json.h"
#include "heddle/trace/summary.h"

namespace heddle {
namespace {

struct TraceFlags {
  std::string file, out;
  bool json = false;
};

void run(const TraceFlags& flags) {
  if (!flags.out.empty()) require_timeline_path(flags.out);
  const Timeline timeline = read_timeline(flags.file);
  const TraceSummary summary = summarise(timeline);
  flags.json ? print_json(to_json(summary)) : print(to_text(summary));
  if (flags.out.empty()) return;
  write_timeline(timeline, flags.out);
  say_written(flags.out);
}

}  // namespace

void add_trace(CLI::App& app) {
  auto flags = std::make_shared<TraceFlags>();
  Command command(app, "trace",
                  "Show where the time of a recorded run went; turn it into a page or for Perfetto");
  command.argument("file", &flags->file,
                   "a .nanotrace, or a page that holds one; `heddle profile --out` records it",
                   {.required = true, .names = Names::kFile});
  command.argument(
      "--out", &flags->out,
      "write it as .html (a timeline to look at), .perfetto-trace (for ui.perfetto.dev), .json (for "
      "chrome://tracing) or .nanotrace",
      {.names = Names::kNewFile});
  command.argument("--json", &flags->json, "print JSON");
  command.footer(
      "Columns are those of `heddle profile`. A .nanotrace of another program works too; it has no costs.\n"
      "Examples:\n"
      "  heddle profile models/storyteller --out run.nanotrace\n"
      "  heddle trace run.nanotrace --out run.html");
  command.action([flags] { run(*flags); });
}

}  // namespace heddle
