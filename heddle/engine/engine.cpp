#include "heddle/engine/engine.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/base/memory.h"
#include "heddle/engine/artefact.h"
#include "heddle/engine/loaded_program.h"
#include "heddle/ir/check.h"

namespace heddle {

struct Engine::State {
  EngineOptions options;
  Planner planner;
  Sequences sequences;
  SharedMemory memory;
  std::map<std::pair<i32, i32>, std::unique_ptr<LoadedProgram>> programs;  // by rows, sequences of the class

  State(std::shared_ptr<const Model> model, EngineOptions chosen)
      : options(std::move(chosen)),
        planner(make_planner(std::move(model), options)),
        sequences(options.max_sequences, planner.model().info().vocab,
                  PagePool(planner.capacity().num_pages, options.page_size), planner.capacity().reach()),
        memory(planner, options) {}
  LoadedProgram& loaded(i32 rows, i32 num_sequences);
  const LoadedProgram& of(const Program& program) const;
  i32 require_valid(std::span<const StepRequest> requests, i32 steps);
  RunReport run(LoadedProgram& loaded, std::span<const StepRequest> requests, i32 steps,
                const StepWatch* watch);
};

LoadedProgram& Engine::State::loaded(i32 rows, i32 num_sequences) {
  const i32 size = planner.row_class(rows, num_sequences), most = std::min(size, options.max_sequences);
  auto& slot = programs[{size, most}];
  if (slot) return *slot;
  return with_memory_for(fmt::format("the program of steps of {} rows", size), [&]() -> LoadedProgram& {
    Program program = options.artefact ? options.artefact->program(size, most) : planner.program(size, most);
    if (options.artefact)
      require_memory(program, planner.graph(size, most).graph);  // the artefact has its proof
    else
      check_or_throw(program);
    slot = std::make_unique<LoadedProgram>(std::move(program), options, memory);
    return *slot;
  });
}

const LoadedProgram& Engine::State::of(const Program& program) const {
  for (const auto& [key, loaded] : programs)
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
size_t Engine::kv_bytes() const {
  return state_->memory.kv_bytes;
}
i32 Engine::max_rows() const {
  return state_->planner.row_classes().back();
}

SequenceId Engine::open(const SamplingSettings& sampling, std::span<const i32> prompt) {
  return state_->sequences.open(sampling, prompt);
}

void Engine::close(SequenceId id) {
  state_->sequences.close(id);
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
  return i32(state_->sequences.pool().find(prompt.first(prompt.size() - 1)).size()) * page_size();
}

i32 Engine::page_size() const {
  return state_->options.page_size;
}

i32 Engine::max_sequences() const {
  return state_->options.max_sequences;
}

// Returns the rows of the step.
i32 Engine::State::require_valid(std::span<const StepRequest> requests, i32 steps) {
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
    require(steps == 1 || (request.tokens.size() == 1 && request.wanted && !options.all_logits),
            "[step] sequence {} has {} tokens in a call of {} steps; must be one, with its choice wanted",
            request.sequence, request.tokens.size(), steps);
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
                             const StepWatch* watch) {
  std::vector<RecordEntry> entries;
  for (const StepRequest& request : requests) {
    Sequence& sequence = sequences.at(request.sequence);
    const i32 count = i32(request.tokens.size());
    sequences.grow(sequence, sequence.length() + count + steps - 1);
    for (i32 token : request.tokens) sequence.see(token);
    entries.push_back({.start = sequence.length(),
                       .tokens = request.tokens,
                       .pages = sequence.pages,
                       .seen = sequence.seen,
                       .sampling = sequence.sampling,
                       .draws = sequence.draws,
                       .wanted = !request.wanted      ? 0
                                 : options.all_logits ? count
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
  const i32 rows = s.require_valid(requests, options.steps);
  LoadedProgram& loaded = s.loaded(rows, i32(requests.size()));
  StepResult result;
  TokensInTime in_time(options);
  try {
    with_memory_for(fmt::format("a step of {} rows", rows),
                    [&] { result.report = s.run(loaded, requests, options.steps, in_time.watch()); });
  } catch (...) {  // the sequences stay as they were, and the pages that they took are free
    for (const StepRequest& request : requests) rewind(request.sequence, length(request.sequence));
    throw;
  }
  const StepDevice& device = loaded.record().device();
  for (size_t i = 0; i < requests.size(); ++i) {
    Sequence& sequence = s.sequences.at(requests[i].sequence);
    const bool chosen = requests[i].wanted && !s.options.all_logits;
    result.sampled.push_back(chosen ? device.sampled()[i] : -1);
    auto& tokens = result.tokens.emplace_back();
    for (; chosen && sequence.draws != device.draws()[i] && tokens.size() < in_time.steps(); ++sequence.draws)
      tokens.push_back(device.history(i32(i))[sequence.draws % u32(StepDevice::kHistory)]);
    if (chosen) result.sampled.back() = tokens.back();
    s.sequences.extend(sequence, requests[i].tokens);
    if (options.steps > 1) s.sequences.extend(sequence, std::span(tokens).first(tokens.size() - 1));
    if (tokens.size() < size_t(options.steps))
      rewind(requests[i].sequence, sequence.length());  // frees spare pages
  }
  if (options.logits)
    result.logits = loaded.logits(size_t(loaded.record().host().wanted) * size_t(info().vocab));
  return result;
}

const Program& Engine::program(i32 rows, i32 sequences) {
  return state_->loaded(rows, sequences).program();
}

std::vector<std::byte> Engine::buffer(const Program& program, u32 index) const {
  return state_->of(program).buffer(index);
}

Trace Engine::trace(const Program& program) const {
  return state_->of(program).trace();
}

}  // namespace heddle
