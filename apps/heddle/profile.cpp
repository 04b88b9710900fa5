// heddle profile: shows where the time of a step goes, by op.

#include "apps/heddle/measure/decode_run.h"
#include "apps/heddle/support/command.h"
#include "apps/heddle/support/engine_flags.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/engine/target.h"
#include "heddle/trace/calibrate.h"
#include "heddle/trace/summary.h"

namespace heddle {
namespace {

struct ProfileFlags {
  EngineFlags engine;
  i32 position = 512, steps = 8, prefill = 0;
  std::string out, costs;
  bool json = false;
};

void run(const ProfileFlags& flags) {
  require(flags.position >= 0 && flags.steps >= 1 && flags.steps <= Engine::kMostSteps,
          "[profile] --position {}, --steps {}; must not be negative, and 1 to {}", flags.position,
          flags.steps, Engine::kMostSteps);
  require(flags.prefill >= 0, "[profile] --prefill {}; must not be negative", flags.prefill);
  if (!flags.out.empty()) require_timeline_path(flags.out);
  const bool decodes = flags.prefill == 0;
  const i32 steps = decodes ? flags.steps : 1, rows = decodes ? 1 : flags.prefill,
            position = decodes ? flags.position : 0;
  EngineOptions options = flags.engine.options();
  if (options.max_context == 0) options.max_context = position + steps * rows + 1;
  const Planner planner = load_planner(flags.engine, options);
  options.run.trace_events = longest_stream(planner.program(planner.row_class(rows, 1), 1)) * u32(steps);
  auto engine = load_engine(flags.engine, options);
  require(rows <= engine->max_rows(), "[profile] --prefill {}; a step has {} rows at most", rows,
          engine->max_rows());
  DecodeRun run(*engine, position, rows);
  for (int turn = 0; turn < 2; ++turn) run.run(steps);  // the first one warms up
  const Program& program = engine->program(rows, 1);
  const Trace trace = engine->trace(program);
  const TracedRun traced{.executor = options.executor,
                         .rows = rows,
                         .wanted = 1,
                         .positions = decodes ? position + steps / 2 : rows,
                         .capacity = engine->max_sequences() * program.shape.max_positions(),
                         .bodies = engine->bodies(program)};
  const Timeline timeline = make_timeline(program, trace, traced);
  const TraceSummary summary = summarise(timeline);
  require(summary.steps > 0, "[profile] {} notes nothing of its runs", options.executor);
  flags.json ? print_json(to_json(summary)) : print(to_text(summary));
  if (!flags.costs.empty()) {
    write_file(flags.costs, to_json(calibrate(program, trace, default_costs(program.topology))));
    say_written(flags.costs);
  }
  if (flags.out.empty()) return;
  write_timeline(timeline, flags.out);
  say_written(flags.out);
}

}  // namespace

void add_profile(CLI::App& app) {
  auto flags = std::make_shared<ProfileFlags>();
  Command command(app, "profile", "Show where the time of a step goes, by op");
  flags->engine.add_to(command);
  flags->engine.add_artefact_to(command);
  command.argument("--position", &flags->position, "position of the first token");
  command.argument("--steps", &flags->steps, "tokens, made in one call");
  command.argument("--prefill", &flags->prefill,
                   "profile one step with this many tokens of a prompt instead; 0: tokens one by one");
  command.argument(
      "--out", &flags->out,
      "also record the run: .html (a page with a timeline), .nanotrace, .perfetto-trace or .json",
      {.names = Names::kNewFile});
  command.argument("--costs", &flags->costs,
                   "write the measured costs of tiles and messages to this file, for heddle schedule",
                   {.names = Names::kNewFile});
  command.argument("--json", &flags->json, "print JSON");
  command.footer(
      "The words of the tables are explained below them.\n"
      "Single ops: heddle profile trace|ncu|nsys|sanitizer -- OP, or my_file.py:MyOp; and any command by\n"
      "NVIDIA's tools: heddle profile ncu|nsys|sanitizer -- COMMAND. Both are python3 -m heddle.profile.\n"
      "Examples:\n"
      "  heddle profile models/storyteller --position 128\n"
      "  heddle profile models/storyteller --workers 8 --out run.html");
  command.action([flags] { run(*flags); });
}

}  // namespace heddle
