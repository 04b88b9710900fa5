// heddle schedule: compares the policies on a model's program, by a model of costs and, on request, by
// measurement.
#include "heddle/schedule/schedule.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "apps/heddle/measure/measured_schedule.h"
#include "apps/heddle/measure/schedule_page.h"
#include "apps/heddle/support/columns.h"
#include "apps/heddle/support/command.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/stopwatch.h"
#include "heddle/engine/default_executor.h"
#include "heddle/engine/target.h"
#include "heddle/ir/check/check.h"
#include "heddle/model/build/family.h"
#include "heddle/model/hf/other_formats.h"
#include "heddle/trace/calibrate.h"

namespace heddle {
namespace {

struct ScheduleFlags {
  EngineFlags engine;
  MeasureFlags how;
  bool compare = false, measure = false, json = false;
  std::string calibrate, plot, out, commit = HEDDLE_VERSION;
};

// The GPU that runs the programs, or, where this machine has none, the first one that the backend knows.
DeviceKind device_kind(const EngineOptions& options) {
  const Backend& backend = backend_of(options.executor);
  const bool is_here = get_executor(options.executor).no_device().empty();
  return is_here ? backend.kind(options.device) : backend.kinds.front();
}

// Takes the best of three times. It proves the program before it reports anything.
PlannedSchedule plan(const Planner& planner, const EngineOptions& options, i32 rows, const CostModel& costs) {
  PlannedSchedule planned{.policy = options.scheduler};
  for (int i = 0; i < 3; ++i) {
    const Stopwatch watch;
    planned.program = planner.program(planner.row_class(rows, 1), 1);
    const double ms = 1e3 * watch.seconds();
    planned.build_ms = i == 0 ? ms : std::min(planned.build_ms, ms);
  }
  check_or_throw(planned.program);
  planned.prediction = predict(planned.program, costs);
  if (const auto bodies = executor_for(options.executor, planned.program).bodies)
    planned.bodies = bodies(planned.program, device_kind(options).arch);
  return planned;
}

// Which calls run as whole kernels, and why the others of such ops do not. Every policy has the same calls.
std::string said_of_bodies(const PlannedSchedule& schedule, const EngineOptions& options, i32 rows) {
  std::string text;
  for (const std::string& line : body_lines(timeline_of(schedule, rows))) text += "  " + line + "\n";
  if (text.empty()) return text;
  return fmt::format("{} on {} runs these calls, whose tiles the prediction counts:\n{}",
                     executor_for(options.executor, schedule.program).name, device_kind(options).text(),
                     text);
}

std::string table(std::span<const PlannedSchedule> schedules) {
  const bool measured = schedules[0].measured.has_value();
  std::string text = fmt::format("{:<14} {:>9}", "policy", "step us");
  if (measured) text += fmt::format(" {:>11} {:>9} {:>9} {:>7}", "measured us", "least", "most", "off %");
  text += fmt::format(" {:>7} {:>8}\n", "busy %", "balance");
  for (const PlannedSchedule& s : schedules) {
    const Prediction& p = s.prediction;
    text += fmt::format("{:<14} {:9.1f}", s.policy, p.step * 1e-3);
    if (measured) {
      const auto [least, most] = std::ranges::minmax_element(s.measured->all);
      text += fmt::format(" {:11.1f} {:9.1f} {:9.1f} {:+7.1f}", s.measured->median(), *least, *most,
                          s.measured->deviation());
    }
    text += fmt::format(" {:7.1f} {:8.3f}\n", 100 * p.busy, p.balance);
  }
  text += fmt::format("\n{:<14} {:>9} {:>11} {:>9} {:>7} {:>11} {:>9}\n", "policy", "work us", "messages us",
                      "messages", "waits", "waiting us", "build ms");
  for (const PlannedSchedule& s : schedules) {
    const Prediction& p = s.prediction;
    text += fmt::format("{:<14} {:9.1f} {:11.1f} {:9} {:7} {:11.1f} {:9.1f}\n", s.policy, p.path_work * 1e-3,
                        p.path_messages * 1e-3, p.messages, p.waits, p.waiting * 1e-3, s.build_ms);
  }
  return text;
}

Json json_of(const PlannedSchedule& s) {
  const Prediction& p = s.prediction;
  Json made = Json::object({{"policy", s.policy},
                            {"step_ns", p.step},
                            {"busy", p.busy},
                            {"balance", p.balance},
                            {"path_work_ns", p.path_work},
                            {"path_messages_ns", p.path_messages},
                            {"path_messages", p.messages},
                            {"waits", p.waits},
                            {"waiting_ns", p.waiting},
                            {"build_ms", s.build_ms}});
  if (s.measured) {
    made["measured_us"] = s.measured->median();
    made["measured_all_us"] = s.measured->all;
    made["off_percent"] = s.measured->deviation();
  }
  return made;
}

// The command as a reader would type it.
std::string command_of(const Command& command, const ScheduleFlags& flags, const EngineOptions& options) {
  const std::string policy = flags.compare ? "" : " --scheduler " + options.scheduler;
  return fmt::format("heddle schedule {}{}{} --executor {} --workers {} --threads {}",
                     std::filesystem::path(flags.engine.model).filename().string(),
                     command.typed({"model", "--out", "--json", "--commit", "--plot", "--scheduler",
                                    "--executor", "--workers", "--threads"}),
                     policy, options.executor, options.workers, options.threads);
}

// Measures the steps of each policy, one policy after the other. All must compute the same.
void measure(const ScheduleFlags& flags, EngineOptions options, std::vector<PlannedSchedule>& schedules) {
  std::optional<MeasuredSteps> first;
  for (PlannedSchedule& schedule : schedules) {
    options.scheduler = schedule.policy;
    const MeasuredSteps steps = measure_steps(flags.engine, options, flags.how);
    if (!first) first = steps;
    require_same(schedule.policy, steps, schedules[0].policy, *first);
    schedule.measured = {.work = fmt::format("step of {} rows at position {}, {}, {} workers, {}",
                                             flags.how.rows, flags.how.position, schedule.policy,
                                             schedule.program.workers.size(), options.executor),
                         .unit = "us",
                         .all = {},
                         .predicted = schedule.prediction.step * 1e-3};
    for (double ns : steps.ns) schedule.measured->all.push_back(ns * 1e-3);
  }
}

void require_valid(const ScheduleFlags& flags) {
  const MeasureFlags& how = flags.how;
  require(how.rows >= 1, "[schedule] --rows {}; must be at least 1", how.rows);
  require(how.position >= 0 && how.steps >= 1 && how.steps <= Engine::kMostSteps && how.rounds >= 1,
          "[schedule] --position {}, --steps {}, --rounds {}; position must not be negative, steps 1 to {}, "
          "rounds positive",
          how.position, how.steps, how.rounds, Engine::kMostSteps);
  require(flags.measure || flags.out.empty(), "[schedule] --out {} is for what --measure says; add it",
          flags.out);
}

std::string said_of_costs(const ScheduleFlags& flags) {
  if (!flags.calibrate.empty()) return "costs of " + flags.calibrate;
  return flags.measure ? "costs of a traced run of the first"
                       : "with costs that were not measured on this machine";
}

void show(const ScheduleFlags& flags, const EngineOptions& options, const std::string& title,
          std::span<const PlannedSchedule> schedules) {
  std::string text = fmt::format("{}: predicted, {}\n", title, said_of_costs(flags));
  if (flags.measure)
    text += fmt::format("measured with {} on {}: the same tokens and logits with each policy\n",
                        options.executor, backend_of(options.executor).device(options.device));
  text += table(schedules);
  text += "work, messages: parts of the critical path. All words: heddle schedule --help\n";
  text += said_of_bodies(schedules.front(), options, flags.how.rows);
  print(wrapped(text, output_columns(), 4));
}

void show_json(const std::string& title, std::span<const PlannedSchedule> schedules) {
  Json rows = Json::array();
  for (const PlannedSchedule& schedule : schedules) rows.push_back(json_of(schedule));
  print_json(Json::object({{"program", title}, {"schedules", rows}}));
}

void run(const Command& command, const ScheduleFlags& flags) {
  require_valid(flags);
  require_model_folder(flags.engine.model);
  const std::shared_ptr<const Model> model = load_model(flags.engine);
  EngineOptions options = flags.engine.options();
  if (flags.measure && options.max_context == 0)
    options.max_context = std::min(flags.how.context(), model->info().default_positions());
  const Topology topology = make_planner(model, options).placement().topology;
  CostModel costs = default_costs(topology);
  if (!flags.calibrate.empty())
    costs = parse_costs(read_file(flags.calibrate), flags.calibrate, costs);
  else if (flags.measure)
    costs = measure_costs(flags.engine, options, flags.how);
  options.costs = costs;
  std::vector<std::string> policies = {options.scheduler};
  for (const Scheduler* scheduler : all_schedulers())
    if (flags.compare && scheduler->name != options.scheduler) policies.emplace_back(scheduler->name);
  std::vector<PlannedSchedule> schedules;
  for (const std::string& policy : policies) {
    options.scheduler = policy;
    schedules.push_back(plan(make_planner(model, options), options, flags.how.rows, costs));
  }
  if (flags.measure) measure(flags, options, schedules);
  const std::string title = fmt::format("{} on {} workers", schedules[0].program.name, topology.workers);
  flags.json ? show_json(title, schedules) : show(flags, options, title, schedules);
  if (!flags.plot.empty()) {
    write_file(flags.plot, schedule_page(title, schedules, flags.how.rows));
    say_written(flags.plot);
  }
  if (flags.out.empty()) return;
  std::vector<Measurement> rows;
  for (const PlannedSchedule& schedule : schedules) rows.push_back(*schedule.measured);
  options.scheduler = policies[0];
  write_measurements(flags.out,
                     {backend_of(options.executor).device(options.device), flags.commit,
                      command_of(command, flags, options)},
                     rows);
}

}  // namespace

void add_schedule(CLI::App& app) {
  auto flags = std::make_shared<ScheduleFlags>();
  Command command(app, "schedule", "Predict a decode step with one scheduler, or with each");
  flags->engine.add_program_to(
      command, "folder with config.json and *.safetensors; without --measure no weights are read");
  flags->engine.add_executor_to(command);
  flags->engine.add_threads_to(command);
  command.argument("--compare", &flags->compare, "predict every policy, not only --scheduler");
  command.argument("--rows", &flags->how.rows, "rows of the step");
  command.argument("--calibrate", &flags->calibrate, "file of costs, from heddle profile --costs",
                   {.names = Names::kFile});
  command.argument(
      "--measure", &flags->measure,
      "also run each policy's programs; without --calibrate, costs come from a run of the first one");
  command.argument("--position", &flags->how.position, "with --measure: positions before the step");
  command.argument("--steps", &flags->how.steps, "with --measure: tokens per call; with --rows one step");
  command.argument("--rounds", &flags->how.rounds, "with --measure: timed calls, after a warm-up");
  command.argument("--out", &flags->out, "with --measure: JSON file for the results",
                   {.names = Names::kNewFile});
  command.argument("--commit", &flags->commit, "version for the JSON file");
  command.argument("--plot", &flags->plot, "write a page with the predicted timelines to this file",
                   {.names = Names::kNewFile});
  command.argument("--json", &flags->json, "print JSON");
  command.footer(
      "step: from the end of one step to the end of the next. busy: the fraction of it that workers spend\n"
      "in tiles. balance: their mean work as a fraction of the largest. work and messages: the two parts\n"
      "of the critical path, and how many messages it has. waits: in the program; waiting: mean time of a "
      "worker. build: time from\n"
      "graph to program, the best of three.\n"
      "measured: the median of the rounds; off: how far the prediction is from it. Every policy must give\n"
      "the same tokens and the same bits of logits.\n"
      "Attention counts one unit of positions for each of its parts. Every program is proved first.\n"
      "Where the executor has whole kernels for calls of many rows, they are named below the table, with "
      "the\n"
      "reasons of those that run tile by tile.\n"
      "Examples: heddle schedule models/storyteller --compare --workers 8\n"
      "          heddle profile models/storyteller --costs costs.json\n"
      "          heddle schedule models/storyteller --compare --calibrate costs.json --plot schedules.html\n"
      "          heddle schedule MODEL --compare --executor megakernel --workers 132");
  command.action([command, flags] { run(command, *flags); });
}

}  // namespace heddle
