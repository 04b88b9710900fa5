// heddle schedule: what each policy makes of a model's program, by a model of costs.
#include "heddle/schedule/schedule.h"

#include <algorithm>

#include <fmt/format.h>

#include "apps/heddle/support/command.h"
#include "apps/heddle/support/engine_flags.h"
#include "apps/heddle/support/output.h"
#include "apps/heddle/support/schedule_page.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/stopwatch.h"
#include "heddle/ir/check.h"
#include "heddle/model/build/family.h"
#include "heddle/trace/calibrate.h"

namespace heddle {
namespace {

struct ScheduleFlags {
  EngineFlags engine;
  i32 rows = 1;
  bool compare = false;
  std::string calibrate, plot;
};

// The best of three times; the program is proved before anything is said of it.
PlannedSchedule plan(const Planner& planner, const std::string& policy, i32 rows, const CostModel& costs) {
  PlannedSchedule planned{.policy = policy};
  for (int i = 0; i < 3; ++i) {
    const Stopwatch watch;
    planned.program = planner.program(row_class(rows, 1), 1);
    const double ms = 1e3 * watch.seconds();
    planned.build_ms = i == 0 ? ms : std::min(planned.build_ms, ms);
  }
  check_or_throw(planned.program);
  planned.prediction = predict(planned.program, costs);
  return planned;
}

std::string table(std::span<const PlannedSchedule> schedules) {
  std::string text =
      fmt::format("{:<14} {:>10} {:>7} {:>8} {:>10} {:>10} {:>9} {:>7} {:>11} {:>9}\n", "policy", "step us",
                  "busy %", "balance", "path work", "messages", "of them", "waits", "waiting us", "build ms");
  for (const PlannedSchedule& s : schedules) {
    const Prediction& p = s.prediction;
    text += fmt::format("{:<14} {:10.1f} {:7.1f} {:8.3f} {:10.1f} {:10.1f} {:9} {:7} {:11.1f} {:9.1f}\n",
                        s.policy, p.step * 1e-3, 100 * p.busy, p.balance, p.path_work * 1e-3,
                        p.path_messages * 1e-3, p.messages, p.waits, p.waiting * 1e-3, s.build_ms);
  }
  return text;
}

void run(const ScheduleFlags& flags) {
  require(flags.rows >= 1, "[schedule] --rows {}; must be at least 1", flags.rows);
  require_model_folder(flags.engine.model);
  const std::shared_ptr<const Model> model = open_model(flags.engine.model);
  EngineOptions options = flags.engine.options();
  const Topology topology = make_planner(model, options).placement().topology;
  CostModel costs = default_costs(topology);
  if (!flags.calibrate.empty()) costs = parse_costs(read_file(flags.calibrate), flags.calibrate, costs);
  options.costs = costs;
  std::vector<std::string> policies = {flags.engine.scheduler};
  if (flags.compare) {
    policies.clear();
    for (const Scheduler* scheduler : all_schedulers()) policies.push_back(scheduler->name);
  }
  std::vector<PlannedSchedule> schedules;
  for (const std::string& policy : policies) {
    options.scheduler = policy;
    schedules.push_back(plan(make_planner(model, options), policy, flags.rows, costs));
  }
  const std::string title = fmt::format("{} on {} workers", schedules[0].program.name, topology.workers);
  print(fmt::format(
      "{}: predicted, {}\n", title,
      flags.calibrate.empty() ? "with costs that nobody measured here" : "costs of " + flags.calibrate));
  print(table(schedules));
  if (!flags.plot.empty()) write_file(flags.plot, schedule_page(title, schedules));
}

}  // namespace

void add_schedule(CLI::App& app) {
  auto flags = std::make_shared<ScheduleFlags>();
  Command command(app, "schedule", "Predict what a schedule, or each of them, makes of a decode step");
  flags->engine.add_program_to(command, "folder with config.json and *.safetensors; no weights are read");
  flags->engine.add_executor_to(command);
  command.argument("--compare", &flags->compare, "every policy, not only --scheduler");
  command.argument("--rows", &flags->rows, "rows of the step");
  command.argument("--calibrate", &flags->calibrate, "file of costs, as heddle profile --costs writes it");
  command.argument("--plot", &flags->plot, "write a page with the predicted timelines to this file");
  command.footer(
      "step: from the end of one step to the end of the next. busy: the part of it that workers spend in "
      "tiles.\n"
      "balance: their mean work as a part of the largest. path work and messages: what the critical path is "
      "made\n"
      "of. waits: in the program; waiting: of a worker, mean. build: from graph to program, the best of "
      "three.\n"
      "Attention counts one unit of positions for each of its parts. Every program is proved first.\n"
      "Examples: heddle schedule models/storyteller --compare --workers 8\n"
      "          heddle profile models/storyteller --costs costs.json\n"
      "          heddle schedule models/storyteller --compare --calibrate costs.json --plot schedules.html\n"
      "          heddle schedule MODEL --compare --executor megakernel --workers 132");
  command.action([flags] { run(*flags); });
}

}  // namespace heddle
