#include "heddle/engine/program_tuner.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "heddle/base/digest.h"
#include "heddle/base/progress.h"
#include "heddle/base/stopwatch.h"
#include "heddle/engine/engine.h"
#include "heddle/ir/check/check.h"
#include "heddle/ir/op.h"
#include "heddle/ir/registry.h"
#include "heddle/schedule/schedule.h"
#include "heddle/tune/op_tuner.h"

namespace heddle {
namespace {

// By name: the configuration of an op, or the scheduler, whose name is that of a configuration's only value. None, and an
// empty one, is the default.
using Choices = std::map<std::string, OpConfig>;

constexpr const char* kScheduler = "scheduler";
constexpr const char* kTogether = "these-together";

std::string scheduler_of(const Choices& choices) {
  const auto found = choices.find(kScheduler);
  if (found == choices.end() || found->second == OpConfig{}) return kDefaultScheduler;
  return found->second.values().front().first;
}

std::string config_of(const Choices& choices) {
  std::string text;
  for (const auto& [op, config] : choices)
    if (op != kScheduler && config != OpConfig{})
      text += fmt::format("{}{}:{}", text.empty() ? "" : ";", op, config.text());
  return text;
}

std::vector<OpConfig> schedulers() {
  std::vector<OpConfig> all{OpConfig{}};
  for (const Scheduler* scheduler : all_schedulers())
    if (std::string_view(scheduler->name) != kDefaultScheduler) all.push_back({{scheduler->name, 1}});
  return all;
}

// All that an engine may be given by a choice.
std::vector<std::string> all_choices() {
  std::vector<std::string> all{kScheduler};
  for (const OpSpec* op : all_ops())
    if (op->configs) all.push_back(op->name);
  return all;
}

// Engines with one text make equal programs, but for the room of a context and what is chosen.
std::string id_of(const Model& model, const EngineOptions& options) {
  const Target target = target_of(options);
  std::string settings =
      fmt::format("{} gpu={} {}", options.executor, target.tiling.gpu, target.topology.workers);
  visit_plain(options, [&](const std::string& name, const auto& value, const Option& option) {
    if (option.kept == Kept::kNot || option.kept == Kept::kRoom) return;
    if (name != kScheduler && name != "config") settings += fmt::format(" {}={}", name, option_text(value));
  });
  const std::string fingerprint = model.fingerprint();
  return digest_of(std::vector<std::string_view>{fingerprint, settings});
}

tune::Key key_of(const std::string& choice, const std::string& of) {
  return tune::Key("program").fact("choice", choice).fact("of", of);
}

tune::Store& store_of(const EngineOptions& options) {
  return tune::OpTuner::of_process(backend_of(options.executor), options.device).store();
}

// Runs answers with any choices on one engine, which has the weights once.
class Answers {
 public:
  Answers(const std::shared_ptr<const Model>& model, const EngineOptions& options, const TuneWork& work)
      : model_(model), options_(options), work_(work), engine_(model, options) {
    require(
        work.prompt >= 1 && work.answer >= 1 && work.prompt <= engine_.max_context() - work.answer,
        "[tune] a prompt of {} tokens and an answer of {}; each must have one or more, and a sequence has "
        "room for {}",
        work.prompt, work.answer, engine_.max_context());
    for (i32 i = 0; i < work.prompt; ++i) prompt_.push_back(i32(7919u * u32(i) % u32(engine_.info().vocab)));
  }

  // Rows of the steps of an answer.
  std::vector<i32> rows() const { return {std::min(work_.prompt, engine_.max_rows()), 1}; }

  // Throws Error where no program with these choices can run. From any thread.
  void prove(const Choices& choices) const {
    EngineOptions options = options_;
    options.scheduler = scheduler_of(choices), options.config = config_of(choices);
    const Planner planner = make_planner(model_, options);
    for (const i32 wanted : rows()) {
      const i32 size = planner.row_class(wanted, 1);
      check_or_throw(planner.program(size, std::min(size, options.max_sequences)));
    }
  }

  // An answer by the defaults that tells how far it is, as none that is timed does.
  void begin() {
    for (const i32 wanted : rows()) engine_.program(wanted, 1);
    answer(8, [](size_t done, size_t all) { tell_progress({"first answer:", "tokens", done, all}); });
  }

  // Nanoseconds of an answer.
  double time(const Choices& choices, int count) {
    engine_.plan(scheduler_of(choices), config_of(choices));
    for (const i32 wanted : rows()) engine_.program(wanted, 1);  // made, and compiled, at the first time
    const Stopwatch watch;
    for (int i = 0; i < count; ++i) answer();
    return std::max(1.0, 1e9 * watch.seconds() / count);
  }

 private:
  // Closes its sequence where a step fails, too: other choices are still to be timed.
  struct Open {
    Engine& engine;
    SequenceId sequence = engine.open({});
    ~Open() { engine.close(sequence); }
  };

  // Takes at most so many tokens of the answer from one call of the engine. `tell` hears what is done.
  void answer(
      i32 most = Engine::kMostSteps, void (*tell)(size_t done, size_t all) = [](size_t, size_t) {}) {
    const Open open{engine_};
    const size_t all = size_t(work_.prompt + work_.answer);
    size_t done = 0;
    tell(done, all);
    i32 last = 0;
    for (std::span<const i32> left = prompt_; !left.empty();) {
      const std::span<const i32> some = left.first(std::min(left.size(), size_t(engine_.max_rows())));
      left = left.subspan(some.size());
      last = step(open.sequence, some, 1, left.empty());
      tell(done += some.size(), all);
    }
    for (i32 left = work_.answer - 1; left > 0;) {
      const i32 steps = std::min(left, most);
      last = step(open.sequence, std::span(&last, 1), steps, true);
      left -= steps;
      tell(done += size_t(steps), all);
    }
    tell(all, all);
  }

  i32 step(SequenceId sequence, std::span<const i32> tokens, i32 steps, bool wanted) {
    const StepRequest request{sequence, tokens, wanted};
    return engine_.step(std::span(&request, 1), {.steps = steps, .logits = false}).sampled[0];
  }

  const std::shared_ptr<const Model> model_;
  const EngineOptions options_;
  const TuneWork work_;
  Engine engine_;
  std::vector<i32> prompt_;
};

// The configurations of ops in programs of so many rows, the default first.
std::map<std::string, std::vector<OpConfig>> candidates_of(const Planner& planner, const TilingTarget& target,
                                                           std::span<const i32> rows, bool reorder) {
  std::map<std::string, std::vector<OpConfig>> all;
  for (const i32 wanted : rows) {
    const Graph graph = planner.fused(planner.row_class(wanted, 1), 1);
    for (const Node& node : graph.nodes()) {
      const Part& part = node.main_part();
      for (const OpConfig& config : configs_of(*part.op, part.args.data(), target)) {
        if (config.reorders() && !reorder) continue;
        std::vector<OpConfig>& known = all.try_emplace(part.op->name, 1, OpConfig{}).first->second;
        if (std::ranges::find(known, config) == known.end()) known.push_back(config);
      }
    }
  }
  return all;
}

// One choice after the other, each with what was best before.
class Tuning {
 public:
  Tuning(const std::shared_ptr<const Model>& model, const EngineOptions& options, const TuneWork& work,
         const tune::Settings& settings)
      : answers_(model, options, work),
        settings_(settings),
        found_({.device = backend_of(options.executor).device(options.device)}) {
    answers_.begin();
  }

  void choose(const std::string& what, const std::vector<OpConfig>& candidates) {
    choices_[what] = best_of(what, candidates, [&](const OpConfig& config) {
      Choices changed = choices_;
      changed[what] = config;
      return changed;
    });
  }

  // Times all winners together against the defaults, which stay where they are as fast.
  TunedPrograms compare() {
    const OpConfig together{{"together", 1}};
    const OpConfig won = best_of(kTogether, {OpConfig{}, together}, [&](const OpConfig& config) {
      return config == together ? choices_ : Choices{};
    });
    if (won != together)
      for (auto& [what, choice] : choices_) choice = {};
    return {scheduler_of(choices_), config_of(choices_), ns_, std::move(tried_)};
  }

  std::vector<i32> rows() const { return answers_.rows(); }
  const Choices& choices() const { return choices_; }

 private:
  OpConfig best_of(const std::string& what, const std::vector<OpConfig>& candidates,
                   const std::function<Choices(const OpConfig&)>& choices_of) {
    const tune::Work work = {.compile = [&](const OpConfig& config) { answers_.prove(choices_of(config)); },
                             .time = [&](const OpConfig& config, int calls,
                                         int) { return answers_.time(choices_of(config), calls); }};
    const std::string doing = "timing " + what + ":";
    tune::Choice choice = tune::choose(found_, tune::Key(what), candidates, settings_, work, doing.c_str());
    ns_ = choice.ns;
    if (what == kScheduler || what == kTogether)  // "wave=1" is a name alone
      for (tune::Tried& one : choice.tried) one.config = one.config.substr(0, one.config.find('='));
    tried_.push_back({what, std::move(choice.tried)});
    return choice.config;
  }

  Answers answers_;
  const tune::Settings settings_;
  tune::Store found_;  // keeps what this run alone has found
  Choices choices_;
  double ns_ = 0;
  std::vector<TunedChoice> tried_;
};

void keep(const Model& model, const EngineOptions& options, const Choices& choices) {
  const std::string of = id_of(model, options);
  for (const auto& [what, config] : choices)
    store_of(options).put(key_of(what, of),
                          {.config = config, .policy = tune::Policy::kPickBest, .configs = 1});
}

}  // namespace

std::string TunedPrograms::summary() const {
  return fmt::format("scheduler {}{}{}", scheduler, config.empty() ? "" : ", config ", config);
}

TunedPrograms tune_programs(const std::shared_ptr<const Model>& model, const EngineOptions& options,
                            const TuneWork& work, tune::Settings settings) {
  require(options.scheduler.empty() && options.config.empty() && !options.artefact,
          "[tune] tuning chooses the scheduler and the configurations; leave them out");
  settings.policy = tune::Policy::kPickBest;
  // An answer takes milliseconds to seconds.
  settings.timing.least_rounds = 3, settings.timing.most_rounds = 12, settings.timing.drop_after = 2;
  settings.timing.sample_ns = 2e7;
  Tuning tuning(model, options, work, settings);
  tuning.choose(kScheduler, schedulers());
  EngineOptions filled = options;
  const Planner planner = make_planner(model, filled);
  for (const auto& [op, candidates] :
       candidates_of(planner, target_of(filled).tiling, tuning.rows(), settings.allow_reorder))
    tuning.choose(op, candidates);
  const TunedPrograms best = tuning.compare();
  keep(*model, options, tuning.choices());
  return best;
}

std::string take_tuned(const Model& model, EngineOptions& options) {
  if (!options.scheduler.empty() || !options.config.empty() || options.artefact) return "";
  validate(options);
  if (!get_executor(options.executor).unavailable().empty()) return "";
  const tune::Store& store = store_of(options);
  if (store.size() == 0) return "";
  Choices choices;
  const std::string of = id_of(model, options);
  for (const std::string& what : all_choices())
    if (const auto known = store.find(key_of(what, of)); known && known->config)
      choices[what] = *known->config;
  if (choices.empty()) return "";
  const TunedPrograms tuned{.scheduler = scheduler_of(choices), .config = config_of(choices)};
  options.scheduler = tuned.scheduler, options.config = tuned.config;
  return tuned.summary();
}

}  // namespace heddle
