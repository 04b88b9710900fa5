#include "heddle/engine/engine.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/base/memory.h"
#include "heddle/engine/artefact.h"
#include "heddle/engine/loaded_program.h"
#include "heddle/engine/written.h"
#include "heddle/ir/check/check.h"
#include "heddle/ir/score_edits.h"

namespace heddle {

struct Engine::State {
  std::shared_ptr<const Model> model;
  EngineOptions options;
  Planner planner;
  Sequences sequences;
  SharedMemory memory;
  std::optional<Planner> all_rows;  // makes steps with logits of all rows, where the others have fewer
  using Programs = std::map<std::tuple<i32, i32, bool>, std::unique_ptr<LoadedProgram>>;
  // By scheduler and configurations; then by rows, sequences, all logits.
  std::map<std::pair<std::string, std::string>, Programs> all_programs;
  Programs* programs;  // that steps run
  bool torn = false;   // an update failed half-way, so that some weights are old and some new

  State(std::shared_ptr<const Model> of, EngineOptions chosen)
      : model(std::move(of)),
        options(std::move(chosen)),
        planner(make_planner(model, options)),
        sequences(options.max_sequences, planner.model().info().vocab,
                  PagePool(planner.capacity().num_pages, options.page_size), planner.capacity().reach(),
                  planner.model().info().recurrent),
        memory(planner, options),
        programs(&all_programs[{options.scheduler, options.config}]) {}
  const Planner& planner_of(bool all_logits);
  LoadedProgram& loaded(i32 rows, i32 num_sequences, bool all_logits);
  const LoadedProgram& of(const Program& program) const;
  i32 require_valid(std::span<const StepRequest> requests, i32 steps, bool all_logits);
  RunReport run(LoadedProgram& loaded, std::span<const StepRequest> requests, i32 steps,
                const StepWatch* watch, bool all_logits);
  static std::vector<float> fetch_logits(const LoadedProgram& loaded, std::span<const StepRequest> requests,
                                         bool all_logits);
  // Finds logits that are not numbers that a token can be chosen by, and throws, or keeps in result.failed.
  void require_finite(std::span<const StepRequest> requests, StepResult& result, std::span<const i32> starts,
                      bool all_logits, bool fails_alone);
  [[noreturn]] void fail_not_finite(SequenceId id, i32 position);
  std::string first_op_not_finite(SequenceId id, std::span<const i32> tokens);
};

const Planner& Engine::State::planner_of(bool all_logits) {
  if (all_logits == options.all_logits) return planner;
  if (!all_rows) {
    EngineOptions changed = options;
    changed.all_logits = true;
    all_rows.emplace(make_planner(model, changed));
  }
  return *all_rows;
}

LoadedProgram& Engine::State::loaded(i32 rows, i32 num_sequences, bool all_logits) {
  const Planner& plans = planner_of(all_logits);
  const i32 size = plans.row_class(rows, num_sequences), most = std::min(size, options.max_sequences);
  auto& slot = (*programs)[{size, most, all_logits}];
  if (slot) return *slot;
  return with_memory_for(fmt::format("the program of steps of {} rows", size), [&]() -> LoadedProgram& {
    Program program = options.artefact ? options.artefact->program(size, most) : plans.program(size, most);
    if (options.artefact)
      require_memory(program, plans.graph(size, most).graph);  // the artefact has its proof
    else
      check_or_throw(program);
    slot = std::make_unique<LoadedProgram>(std::move(program), options, memory);
    return *slot;
  });
}

const LoadedProgram& Engine::State::of(const Program& program) const {
  for (const auto& [plan, made] : all_programs)
    for (const auto& [key, loaded] : made)
      if (&loaded->program() == &program) return *loaded;
  fail(ErrorCode::kInvalidArgument, "[engine] the program is not one of this engine");
}

Engine::Engine(std::shared_ptr<const Model> model, EngineOptions options) {
  if (std::string why = get_executor(options.executor).unavailable(); !why.empty() && !options.artefact)
    fail(ErrorCode::kUnsupported, "[executor] {} cannot run here: {}", options.executor, why);
  with_memory_for("the model, its KV cache and its programs", [&] {
    take_settings(*model, options);
    state_ = std::make_unique<State>(std::move(model), std::move(options));
  });
}

Engine::~Engine() = default;

const ModelInfo& Engine::info() const {
  return state_->planner.model().info();
}
i32 Engine::max_context() const {
  return state_->options.max_context;
}
size_t Engine::weight_bytes() const {
  return state_->memory.weights->bytes();
}
const std::string& Engine::weights_note() const {
  return state_->memory.weights_note;
}
size_t Engine::kv_bytes() const {
  return state_->memory.kv_bytes;
}
i32 Engine::max_rows(bool all_logits) const {
  return state_->planner_of(all_logits || state_->options.all_logits).row_classes().back();
}

SequenceId Engine::open(const SamplingSettings& sampling, std::span<const i32> prompt) {
  return state_->sequences.open(sampling, prompt);
}

void Engine::close(SequenceId id) {
  state_->sequences.close(id);
}

void Engine::begin_answer(SequenceId id, const SamplingSettings& sampling) {
  state_->sequences.begin_answer(state_->sequences.at(id), sampling);
}

i32 Engine::length(SequenceId id) const {
  return state_->sequences.at(id).length();
}

std::span<const i32> Engine::tokens(SequenceId id) const {
  return state_->sequences.at(id).tokens;
}

void Engine::rewind(SequenceId id, i32 length) {
  state_->sequences.rewind(state_->sequences.at(id), length);
}

i32 Engine::known(std::span<const i32> prompt) const {
  if (prompt.empty()) return 0;
  return i32(state_->sequences.find(prompt.first(prompt.size() - 1)).size()) * page_size();
}

i32 Engine::page_size() const {
  return state_->options.page_size;
}

i32 Engine::max_sequences() const {
  return state_->options.max_sequences;
}

i32 Engine::free_pages() const {
  return i32(state_->sequences.pool().free_pages());
}

i32 Engine::held_pages(SequenceId id) const {
  const Sequence& sequence = state_->sequences.at(id);
  return i32(sequence.pages.size()) - sequence.gone;
}

i32 Engine::missing_pages(SequenceId id, i32 positions) const {
  const i32 all = state_->sequences.pool().pages_for(positions);
  return std::max(all - i32(state_->sequences.at(id).pages.size()), 0);
}

i32 Engine::max_held_pages() const {
  return i32(most_pages(state_->planner.capacity(), 1, 0));
}

// Returns the rows of the step.
i32 Engine::State::require_valid(std::span<const StepRequest> requests, i32 steps, bool all_logits) {
  require(steps >= 1 && steps <= kMostSteps, "[step] {} steps; must be 1 to {}", steps, kMostSteps);
  require(!requests.empty(), "[step] no sequence has tokens; a step needs one");
  const i32 vocab = planner.model().info().vocab;
  std::set<SequenceId> seen;
  i32 rows = 0;
  for (const StepRequest& request : requests) {
    const Sequence& sequence = sequences.at(request.sequence);
    require(seen.insert(request.sequence).second, "[step] sequence {} comes twice in one step",
            request.sequence);
    require(!request.tokens.empty(), "[step] sequence {} has no tokens", request.sequence);
    require(steps == 1 || (request.tokens.size() == 1 && request.wanted && !all_logits),
            "[step] sequence {} has {} tokens in a call of {} steps; must be one, with its choice wanted",
            request.sequence, request.tokens.size(), steps);
    require(request.mask.empty() || steps == 1,
            "[step] sequence {} has a mask in a call of {} steps; must be in a call of one", request.sequence,
            steps);
    const i64 end = sequence.length() + i64(request.tokens.size()) + steps - 1;
    require(end <= options.max_context, "[step] sequence {} would have {} positions; max_context is {}",
            request.sequence, end, options.max_context);
    for (i32 token : request.tokens)
      require(token >= 0 && token < vocab, "[step] token {}; the vocabulary has 0 to {}", token, vocab - 1);
    rows += i32(request.tokens.size());
  }
  return rows;
}

RunReport Engine::State::run(LoadedProgram& loaded, std::span<const StepRequest> requests, i32 steps,
                             const StepWatch* watch, bool all_logits) {
  const ModelInfo& info = planner.model().info();
  std::vector<RecordEntry> entries;
  for (const StepRequest& request : requests) {
    Sequence& sequence = sequences.at(request.sequence);
    const i32 count = i32(request.tokens.size());
    sequences.grow(sequence, sequence.length() + count + steps - 1);
    for (i32 token : request.tokens) sequence.see(token);
    if (!sequence.edits.empty() && !sequence.edits_lie_there)
      memory.set_edits(request.sequence, sequence.edits);
    sequence.edits_lie_there = false;  // before it is known what the step counted
    sequence.sampling.edited &= ~ScoreEdits::kByMask;
    if (!request.mask.empty()) {
      std::vector<u32> mask(request.mask.begin(), request.mask.end());
      mask.resize(size_t(info.vocab + 31) / 32);
      memory.set_mask(request.sequence, mask);
      sequence.sampling.edited |= ScoreEdits::kByMask;
    }
    entries.push_back({.start = sequence.length(),
                       .tokens = request.tokens,
                       .pages = sequence.pages,
                       .seen = sequence.seen,
                       .sampling = sequence.sampling,
                       .draws = sequence.draws,
                       .wanted = !request.wanted ? 0
                                 : all_logits    ? count
                                                 : 1});
  }
  loaded.record().write(entries, u32(planner.capacity().num_pages), planner.capacity().reach());
  return loaded.run(steps, watch);
}

namespace {

// Reports the tokens of a call while it runs, and counts the steps that are valid: a device may be one step
// further when it is told to end.
class TokensInTime {
 public:
  explicit TokensInTime(const StepOptions& options) : options_(options) {
    require(!options.on_tokens || !options.logits,
            "[step] logits and tokens during the call cannot be combined; ask for one of them");
    watch_.ends = options.ends;
    watch_.on_step = [this](std::span<const i32> chosen) { return take(chosen); };
  }
  const StepWatch* watch() const { return options_.on_tokens ? &watch_ : nullptr; }
  size_t steps() const { return options_.on_tokens ? steps_ : size_t(options_.steps); }

 private:
  bool take(std::span<const i32> chosen) {
    if (ended_) return false;
    ++steps_;
    if (std::ranges::find(chosen, StepArrays::kNoToken) != chosen.end()) {
      ended_ = true;
      if (options_.fails_alone) options_.on_tokens(chosen);
      return false;
    }
    ended_ = std::ranges::find_first_of(chosen, options_.ends) != chosen.end();
    if (!options_.on_tokens(chosen)) ended_ = true;
    return !ended_;
  }

  const StepOptions& options_;
  StepWatch watch_;
  size_t steps_ = 0;
  bool ended_ = false;
};

}  // namespace

StepResult Engine::step(std::span<const StepRequest> requests, const StepOptions& options) {
  State& s = *state_;
  const bool all_logits = s.options.all_logits || options.all_logits;
  if (all_logits && !s.options.all_logits && s.options.artefact)
    fail(ErrorCode::kUnsupported,
         "[step] logits of all rows are asked for, and the programs, made ahead of time, compute those of "
         "last rows; "
         "load the model without them, or compile them with all_logits");
  require(!s.torn,
          "[step] an update of the weights failed half-way; update all of them, or load the model again");
  const i32 rows = s.require_valid(requests, options.steps, all_logits);
  LoadedProgram& loaded = s.loaded(rows, i32(requests.size()), all_logits);
  StepResult result;
  TokensInTime in_time(options);
  try {
    with_memory_for(fmt::format("a step of {} rows", rows), [&] {
      result.report = s.run(loaded, requests, options.steps, in_time.watch(), all_logits);
    });
  } catch (
      ...) {  // the sequences stay as they were, or lose what the step may have torn; pages that they took are free
    for (const StepRequest& request : requests) s.sequences.drop_step(s.sequences.at(request.sequence));
    throw;
  }
  const StepDevice& device = loaded.record().device();
  std::vector<i32> starts;
  for (size_t i = 0; i < requests.size(); ++i) {
    Sequence& sequence = s.sequences.at(requests[i].sequence);
    starts.push_back(sequence.length());
    const bool chosen = requests[i].wanted && !all_logits;
    result.sampled.push_back(chosen ? device.sampled()[i] : -1);
    auto& tokens = result.tokens.emplace_back();
    for (; chosen && sequence.draws != device.draws()[i] && tokens.size() < in_time.steps(); ++sequence.draws)
      tokens.push_back(device.history(i32(i))[sequence.draws % u32(StepDevice::kHistory)]);
    // Steps after one without a choice go on from nothing.
    if (const auto none = std::ranges::find(tokens, StepArrays::kNoToken); none != tokens.end())
      tokens.erase(none + 1, tokens.end());
    if (chosen) result.sampled.back() = tokens.back();
    for (const i32 token : tokens) sequence.count(token);
    sequence.edits_lie_there = sequence.draws == device.draws()[i];  // a device may be some steps further
    s.sequences.extend(sequence, requests[i].tokens);
    if (options.steps > 1) s.sequences.extend(sequence, std::span(tokens).first(tokens.size() - 1));
    if (tokens.size() < size_t(options.steps))
      rewind(requests[i].sequence, sequence.length());  // frees spare pages
  }
  // One step more has written next to what the last one left; further ones, over it.
  if (info().recurrent && size_t(result.report.steps) > in_time.steps() + 1)
    for (const StepRequest& request : requests) s.sequences.drop_step(s.sequences.at(request.sequence));
  if (options.logits) result.logits = s.fetch_logits(loaded, requests, all_logits);
  s.require_finite(requests, result, starts, all_logits, options.fails_alone);
  return result;
}

std::vector<float> Engine::State::fetch_logits(const LoadedProgram& loaded,
                                               std::span<const StepRequest> requests, bool all_logits) {
  const auto rows_of = [&](const StepRequest& request) {
    return request.wanted ? all_logits ? request.tokens.size() : 1 : 0;
  };
  size_t rows = 0, row = 0;
  for (const StepRequest& request : requests) rows += request.logits ? rows_of(request) : 0;
  const size_t vocab = size_t(loaded.program().shape.vocab);
  auto logits = make_vector<float>(rows * vocab, "the logits of a step");
  std::span<float> rest = logits;
  for (const StepRequest& request : requests) {
    const size_t count = rows_of(request);
    if (request.logits) {
      loaded.read_logits(row, rest.first(count * vocab));
      rest = rest.subspan(count * vocab);
    }
    row += count;
  }
  return logits;
}

void Engine::State::require_finite(std::span<const StepRequest> requests, StepResult& result,
                                   std::span<const i32> starts, bool all_logits, bool fails_alone) {
  const size_t vocab = size_t(model->info().vocab);
  std::span<const float> logits = result.logits;
  result.failed.resize(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const i32 last = starts[i] + i32(requests[i].tokens.size()) - 1;
    i32 bad = -1;  // position
    if (!result.tokens[i].empty() && result.tokens[i].back() == StepArrays::kNoToken)
      bad = last + i32(result.tokens[i].size()) - 1;
    const bool fetched = requests[i].wanted && requests[i].logits && !logits.empty();
    for (i32 position = all_logits ? starts[i] : last; fetched && position <= last; ++position) {
      if (bad < 0 && !can_choose(logits.first(vocab))) bad = position;
      logits = logits.subspan(vocab);
    }
    if (bad < 0) continue;
    try {
      fail_not_finite(requests[i].sequence, bad);
    } catch (const NotFiniteLogits&) {
      if (!fails_alone) throw;
      result.failed[i] = std::current_exception();
    }
  }
}

void Engine::State::fail_not_finite(SequenceId id, i32 position) {
  // All of them: a NaN of a later position reaches earlier ones of its step, because it stays one when it weighs 0.
  const std::vector<i32> tokens = sequences.at(id).tokens;
  if (!sequences.at(id).has_choice())
    throw NotFiniteLogits(id, fmt::format("[sampling] position {}: the sequence's settings ban every token; "
                                          "fewer of logit_bias or suppress_tokens leave some",
                                          position));
  if ((sequences.at(id).sampling.edited & ScoreEdits::kByMask) != 0)
    throw NotFiniteLogits(id,
                          fmt::format("[sampling] position {}: the answer's form and its settings leave no "
                                      "token, or the logits are no numbers; fewer settings may leave some",
                                      position));
  std::string found;
  try {
    found = first_op_not_finite(id, tokens);
  } catch (const std::exception& error) {
    found = fmt::format("the search for the op that made it failed: {}", error.what());
  }
  throw NotFiniteLogits(id, fmt::format("[logits] position {}: the logits contain NaN or +infinity, or are "
                                        "all -infinity, so no token can be chosen; {}",
                                        position, found));
}

// Runs the tokens again from the beginning, with every op for itself, until one makes a value that is not finite.
std::string Engine::State::first_op_not_finite(SequenceId id, std::span<const i32> tokens) {
  constexpr i32 kRows = 8;  // few, because every op keeps its result
  EngineOptions kept = options;
  kept.keep_buffers = true;
  kept.artefact = nullptr;
  kept.passes.fuse_epilogues = kept.passes.fuse_prologues = false;
  kept.run.trace_events = 0;
  const Planner unfused = make_planner(model, kept);
  const i32 rows = unfused.row_class(kRows, 1), most = std::min(rows, kept.max_sequences);
  Program program = unfused.program(rows, most);
  check_or_throw(program);
  LoadedProgram loaded(std::move(program), kept, memory);
  Sequence& sequence = sequences.at(id);
  sequences.rewind(sequence, 0);
  for (std::span<const i32> left = tokens; !left.empty();) {
    const StepRequest request{id, left.first(std::min(left.size(), size_t(kRows))), true};
    const i32 begin = sequence.length();
    run(loaded, std::span(&request, 1), 1, nullptr, options.all_logits);
    const auto found = first_not_finite(loaded.program(), i32(request.tokens.size()),
                                        [&](u32 buffer) { return loaded.buffer(buffer); });
    if (found)
      return fmt::format(
          "the first result that is not finite is {}, of {} ({}) at position {}; its weights, or "
          "a type with too small a range, make it",
          found->value, found->call, found->op, begin + found->row);
    sequences.extend(sequence, request.tokens);
    left = left.subspan(request.tokens.size());
  }
  return fmt::format("op by op, in steps of {} rows, all results of these tokens are finite", kRows);
}

void Engine::update_weights(const WeightValues& values, const std::function<void()>& before) {
  State& s = *state_;
  const ModelGraph graph = s.planner.graph(1, 1);
  const auto missing = [&](const auto& specs) {
    for (const auto& [name, spec] : specs)
      for (const WeightSource& source : spec.sources)
        if (!values.has(source.tensor)) return true;
    return false;
  };
  const bool torn_after = s.torn && (missing(graph.weights) || missing(graph.vectors));
  with_memory_for("an update of the weights", [&] {
    const auto begin = [&] {
      before();
      s.sequences.forget_pages();
      s.torn = true;
    };
    s.memory.weights->update(graph, values, s.options.threads, begin);
  });
  s.torn = torn_after;
}

void Engine::plan(const std::string& scheduler, const std::string& config) {
  State& s = *state_;
  if (s.options.artefact)
    fail(ErrorCode::kUnsupported, "[engine] the programs were made ahead of time, with scheduler {}",
         s.options.scheduler);
  EngineOptions changed = s.options;
  changed.scheduler = scheduler, changed.config = config;
  Planner planner = make_planner(s.model, changed);
  s.options = std::move(changed);
  s.planner = std::move(planner);
  s.all_rows.reset();
  s.programs = &s.all_programs[{s.options.scheduler, s.options.config}];
}

const Program& Engine::program(i32 rows, i32 sequences) {
  return state_->loaded(rows, sequences, state_->options.all_logits).program();
}

std::vector<std::byte> Engine::buffer(const Program& program, u32 index) const {
  return state_->of(program).buffer(index);
}

Trace Engine::trace(const Program& program) const {
  return state_->of(program).trace();
}

std::vector<std::string> Engine::bodies(const Program& program) const {
  return state_->of(program).bodies();
}

}  // namespace heddle
