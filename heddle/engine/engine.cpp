#include "heddle/engine/engine.h"

#include <algorithm>
#include <optional>
#include <set>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/engine/artefact.h"
#include "heddle/engine/record.h"
#include "heddle/engine/target.h"
#include "heddle/schedule/schedule.h"

namespace heddle {
namespace {

// A program with its memory and executor.
struct Loaded {
  Program program;
  StepRecord record;
  std::vector<Storage> own;     // arena first, then buffers that no other program shares
  std::optional<Storage> host;  // the record's parts in the executor's memory, where that is not the host's
  std::optional<Storage> state;
  Memory memory;
  std::unique_ptr<Executor> executor;
  u32 logits = kNoBuffer;

  explicit Loaded(Program made) : program(std::move(made)), record(program.shape) {}

  void send_record() {
    if (!host) return;
    host->write(record.host_bytes(), host->size());
    state->write(record.device_bytes(), state->size());
  }
  void fetch_record() {
    if (state) state->read(record.device_bytes(), state->size());
  }
};

}  // namespace

struct Engine::State {
  EngineOptions options;
  Planner planner;
  std::unique_ptr<WeightStore> weights;
  MemorySpace* space = nullptr;       // where the executor's buffers lie; null: in the host's memory
  std::map<std::string, Storage> kv;  // by buffer name
  size_t kv_bytes = 0;
  Sequences sequences;
  std::map<std::pair<i32, i32>, std::unique_ptr<Loaded>> programs;  // by rows and sequences of the class

  State(std::shared_ptr<const Model> model, EngineOptions chosen)
      : options(std::move(chosen)),
        planner(make_planner(std::move(model), options)),
        sequences(options.max_sequences, planner.model().info().vocab,
                  PagePool(planner.capacity().num_pages, options.page_size), planner.capacity().reach()) {
    const ExecutorSpec& spec = get_executor(options.executor);
    if (spec.space) space = &spec.space();
  }
  Loaded& loaded(i32 rows, i32 num_sequences);
  const Loaded& of(const Program& program) const;
  void bind(Loaded& loaded, i32 rows);
  i32 require_valid(std::span<const StepRequest> requests, i32 steps);
  RunReport run(Loaded& loaded, std::span<const StepRequest> requests, i32 steps, const StepWatch* watch);
};

Loaded& Engine::State::loaded(i32 rows, i32 num_sequences) {
  const i32 size = planner.row_class(rows, num_sequences), most = std::min(size, options.max_sequences);
  auto& slot = programs[{size, most}];
  if (slot) return *slot;
  Program program = options.artefact ? options.artefact->program(size, most) : planner.program(size, most);
  if (options.artefact)
    require_memory(program, planner.graph(size, most).graph);  // the artefact has its proof
  else
    check_or_throw(program);
  auto made = std::make_unique<Loaded>(std::move(program));
  bind(*made, size);
  slot = std::move(made);
  return *slot;
}

const Loaded& Engine::State::of(const Program& program) const {
  for (const auto& [key, loaded] : programs)
    if (&loaded->program == &program) return *loaded;
  fail(ErrorCode::kInvalidArgument, "[engine] the program is not one of this engine");
}

void Engine::State::bind(Loaded& made, i32 rows) {
  const Program& program = made.program;
  made.own.emplace_back(size_t(std::max<i64>(program.arena_bytes, 1)), space);
  if (space) {
    made.host.emplace(size_t(StepHost::bytes(program.shape)), space);
    made.state.emplace(size_t(StepDevice::bytes(program.shape)), space);
  }
  for (u32 b = 0; b < program.buffers.size(); ++b) {
    const auto& [info, arena_offset] = program.buffers[b];
    std::byte* base = nullptr;
    const u64* panels = nullptr;
    if (info.kind == BufferKind::kStepHost) {
      base = made.host ? made.host->data() : made.record.host_bytes();
    } else if (info.kind == BufferKind::kStepDevice) {
      base = made.state ? made.state->data() : made.record.device_bytes();
    } else if (info.kind == BufferKind::kPages) {
      base = kv.at(info.name).data();
    } else if (weights->has(info.name)) {
      base = weights->data(info.name);
      panels = weights->panels(info.name);
    } else if (arena_offset >= 0) {
      base = made.own.front().data() + arena_offset;
    } else {
      base = made.own.emplace_back(size_t(info.bytes), space).data();
    }
    if (info.kind == BufferKind::kOutput) made.logits = b;
    made.memory.base.push_back(base);
    made.memory.panels.push_back(panels);
  }
  ExecutorOptions run = options.run;
  run.threads = options.threads;
  if (options.artefact) run.code = &options.artefact->code;
  const ExecutorSpec* spec = &get_executor(options.executor);
  if (rows >= kManyStepRows && spec->many_rows) spec = &get_executor(spec->many_rows);
  made.executor = spec->create(program, made.memory, run);
}

Target target_of(const EngineOptions& options) {
  if (options.target) return *options.target;
  const ExecutorSpec& executor = get_executor(options.executor);
  i32 workers = options.workers;
  if (workers == 0) workers = executor.workers ? executor.workers() : options.threads;
  if (workers == 0) workers = allowed_cores();
  return executor.space ? gpu_target(workers) : cpu_target(workers);
}

namespace {

i32 most_splits(const Target& target, i32 kv_heads) {
  return std::clamp(target.most_parts / std::max(kv_heads, 1), 1, target.max_splits);
}

}  // namespace

Planner make_planner(std::shared_ptr<const Model> model, EngineOptions& o) {
  const ModelInfo& info = model->info();
  if (o.artefact) take_settings(*model, o);
  get_scheduler(o.scheduler);
  require(o.threads >= 0 && o.threads <= 1024, "[engine] threads = {}; must be 0 (all cores) to 1024",
          o.threads);
  require(o.workers >= 0 && o.workers <= 4096, "[engine] workers = {}; must be 0 (one a thread) to 4096",
          o.workers);
  require(o.max_sequences >= 1 && o.max_sequences <= 512, "[engine] max_sequences = {}; must be 1 to 512",
          o.max_sequences);
  constexpr i32 kMostUnit = 1 << 16, kMostSplits = 1024;
  require(o.split_unit >= 0 && o.split_unit <= kMostUnit && o.max_splits >= 0 && o.max_splits <= kMostSplits,
          "[engine] split_unit = {}, max_splits = {}; must be 0 (as the target has it) to {} and {}",
          o.split_unit, o.max_splits, kMostUnit, kMostSplits);
  if (o.threads == 0) o.threads = allowed_cores();
  if (o.max_context == 0) o.max_context = std::min(info.max_positions, 8192);
  require(o.max_context >= 1 && o.max_context <= info.max_positions,
          "[engine] max_context = {}; the model allows 1 to {}{}{}", o.max_context, info.max_positions,
          info.position_limit.empty() ? "" : ": ", info.position_limit);
  const Target target = target_of(o);
  if (o.workers == 0) o.workers = target.topology.workers;
  Capacity capacity = {.pages_per_sequence = (o.max_context + o.page_size - 1) / o.page_size,
                       .page_size = o.page_size,
                       .split_unit = o.split_unit > 0 ? o.split_unit : target.split_unit,
                       .max_splits = o.max_splits > 0 ? o.max_splits : most_splits(target, info.kv_heads),
                       .window = info.window,
                       .kv_dtype = o.kv_dtype,
                       .all_logits = o.all_logits};
  const i64 pages = most_pages(capacity, o.max_sequences,
                               std::max<i64>(target.most_rows, i64(Engine::kMostSteps) * o.max_sequences));
  require(pages <= INT32_MAX, "[engine] {} sequences of {} positions are {} pages; at most {}",
          o.max_sequences, o.max_context, pages, INT32_MAX);
  capacity.num_pages = i32(pages);
  return {
      std::move(model), target, capacity,
      CompileOptions{
          .scheduler = o.scheduler, .passes = o.passes, .costs = o.costs, .keep_buffers = o.keep_buffers}};
}

Engine::Engine(std::shared_ptr<const Model> model, EngineOptions options) {
  if (std::string why = get_executor(options.executor).unavailable(); !why.empty() && !options.artefact)
    fail(ErrorCode::kUnsupported, "[executor] {} cannot run here: {}", options.executor, why);
  state_ = std::make_unique<State>(std::move(model), std::move(options));
  State& s = *state_;
  const MemoryNeed need = memory_need(s.planner, s.options.max_sequences, s.space);
  if (s.options.on_need) s.options.on_need(need);
  require_fit(need);
  const ModelGraph one = s.planner.graph(1, 1);
  s.weights =
      std::make_unique<WeightStore>(s.planner.model(), one, s.options.threads, s.space, s.options.progress);
  for (const Buffer& buffer : one.graph.buffers())
    if (buffer.kind == BufferKind::kPages) {
      s.kv.emplace(buffer.name, Storage(size_t(buffer.bytes), s.space, true));
      s.kv_bytes += size_t(buffer.bytes);
    }
}

Engine::~Engine() = default;

const ModelInfo& Engine::info() const {
  return state_->planner.model().info();
}
i32 Engine::max_context() const {
  return state_->options.max_context;
}
size_t Engine::weight_bytes() const {
  return state_->weights->bytes();
}
size_t Engine::kv_bytes() const {
  return state_->kv_bytes;
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

RunReport Engine::State::run(Loaded& loaded, std::span<const StepRequest> requests, i32 steps,
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
  loaded.record.write(entries, u32(planner.capacity().num_pages), planner.capacity().reach());
  loaded.send_record();
  const RunReport report = watch ? loaded.executor->run(steps, *watch) : loaded.executor->run(steps);
  loaded.fetch_record();
  return report;
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
  Loaded& loaded = s.loaded(rows, i32(requests.size()));
  StepResult result;
  TokensInTime in_time(options);
  try {
    result.report = s.run(loaded, requests, options.steps, in_time.watch());
  } catch (...) {  // the sequences stay as they were, and the pages that they took are free
    for (const StepRequest& request : requests) rewind(request.sequence, length(request.sequence));
    throw;
  }
  const StepDevice& device = loaded.record.device();
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
  if (!options.logits) return result;
  const size_t count = size_t(loaded.record.host().wanted) * size_t(info().vocab);
  result.logits.resize(count);
  copy_from(s.space, result.logits.data(), loaded.memory.base[loaded.logits], count * sizeof(float));
  return result;
}

const Program& Engine::program(i32 rows, i32 sequences) {
  return state_->loaded(rows, sequences).program;
}

std::vector<std::byte> Engine::buffer(const Program& program, u32 index) const {
  std::vector<std::byte> bytes(size_t(program.buffers[index].info.bytes));
  copy_from(state_->space, bytes.data(), state_->of(program).memory.base[index], bytes.size());
  return bytes;
}

Trace Engine::trace(const Program& program) const {
  return state_->of(program).executor->trace();
}

}  // namespace heddle
