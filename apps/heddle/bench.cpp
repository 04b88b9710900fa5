// heddle bench: times decode and prefill once they are warm, and compares them with what memory bandwidth
// allows.
#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "apps/heddle/measure/measurements.h"
#include "apps/heddle/support/columns.h"
#include "apps/heddle/support/command.h"
#include "apps/heddle/support/engine_flags.h"
#include "apps/heddle/support/input.h"
#include "apps/heddle/support/output.h"
#include "heddle/base/error.h"
#include "heddle/base/json.h"
#include "heddle/base/progress.h"
#include "heddle/base/stopwatch.h"
#include "heddle/session/settings.h"

namespace heddle {
namespace {

struct BenchFlags {
  EngineFlags engine;
  std::string positions = "0,512", out, commit = HEDDLE_VERSION;
  i32 prefill = 512, steps = 16, rounds = 5, sequences = 1;
  bool json = false;
  SamplingParams sampling;  // how the tokens of one call are chosen
};

// "; temperature 0.8, top-p 0.95"; empty when the most likely token is chosen.
std::string chosen_by(const SamplingParams& sampling) {
  if (sampling.greedy()) return {};
  std::string text = fmt::format("; temperature {:g}", sampling.temperature);
  if (sampling.top_k > 0) text += fmt::format(", top-k {}", sampling.top_k);
  if (sampling.top_p < 1) text += fmt::format(", top-p {:g}", sampling.top_p);
  return text;
}

double seconds_of(const auto& work) {
  const Stopwatch watch;
  work();
  return watch.seconds();
}

std::vector<i32> some_tokens(i32 count, i32 vocab) {
  std::vector<i32> tokens;
  u32 state = 1;
  for (i32 i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;  // Numerical Recipes
    tokens.push_back(i32((state >> 8) % u32(vocab)));
  }
  return tokens;
}

class Bench {
 public:
  Bench(const BenchFlags& flags, const EngineOptions& options)
      : flags_(flags),
        name_(get_executor(options.executor).space ? options.executor
                                                   : fmt::format("{} threads", options.threads)),
        backend_(backend_of(options.executor)),
        device_(options.device),
        threads_(options.threads) {
    measure_bandwidth();
    double load = seconds_of([&] { engine_ = load_engine(flags.engine, options); });
    add({.work = "start: weights packed", .unit = "s", .all = {load}});
    const Program& one = build(1);
    // A token reads every weight once.
    for (const Home& home : one.homes)
      if (home.period == 0) weight_bytes_ += home.end - home.begin;
  }

  void run() {
    if (flags_.prefill > 0) prefill();
    for (i32 position : parse_tokens(flags_.positions, "--positions")) {
      decode(position);
      if (flags_.sequences > 1) decode_shared(position);
    }
    engine_.reset();
    measure_bandwidth();
    add(bandwidth_);
    const double least_ms = 1e-6 * double(weight_bytes_) / std::ranges::max(bandwidth_.all);
    for (size_t row : decodes_) rows_[row].ceiling = least_ms;
    if (!flags_.json)
      print("{:<52} {:10.2f} ms/token{}\n", "to read every weight once from memory", least_ms,
            is_faster(least_ms) ? "\n    tokens take less: weights stay in caches" : "");
  }

  const std::vector<Measurement>& rows() const { return rows_; }

 private:
  bool is_faster(double least_ms) const {
    return std::ranges::any_of(decodes_, [&](size_t row) { return rows_[row].median() < least_ms; });
  }

  void add(Measurement row) {
    std::string text = fmt::format("{:<52} {:10.2f} {}", row.work, row.median(), row.unit);
    if (row.all.size() > 1) {
      const auto [low, high] = std::minmax_element(row.all.begin(), row.all.end());
      const std::string range = fmt::format("  ({:.2f} to {:.2f})", *low, *high);
      text += (text.size() + range.size() > output_columns() ? "\n  " : "") + range;
    }
    if (!flags_.json) print(text + "\n"), flush_output();
    rows_.push_back(std::move(row));
  }

  // Bandwidth is measured before and after everything, because other work changes what is left of it. It is
  // not measured while the model is loaded: that would raise the peak of memory and evict the weights from
  // caches.
  void measure_bandwidth() { bandwidth_.all.push_back(1e-9 * backend_.read_bandwidth(device_, threads_)); }

  const Program& build(i32 rows) {
    const Program* program = nullptr;
    const double time = seconds_of([&] { program = &engine_->program(rows, 1); });
    const std::string work = fmt::format("program of {} rows: built and proved", program->shape.rows);
    add({.work = work, .unit = "s", .all = {time}});
    return *program;
  }

  // Computes the next tokens of a sequence in as few steps as possible. Returns seconds.
  double extend(SequenceId sequence, std::span<const i32> tokens) {
    return seconds_of([&] {
      while (!tokens.empty()) {
        const size_t count = std::min(tokens.size(), size_t(engine_->max_rows()));
        const StepRequest request{sequence, tokens.first(count), count == tokens.size()};
        engine_->step(std::span(&request, 1), {.logits = false});
        tokens = tokens.subspan(count);
      }
    });
  }

  // `times` sequences in each round of a row read so many positions, and make the tokens that are timed.
  void expect(i32 positions, i32 times) {
    done_ = 0, to_do_ = size_t(positions + flags_.steps) * size_t(times) * size_t(flags_.rounds + 1);
    did(0);
  }
  void did(i32 tokens) {
    done_ += size_t(tokens);
    tell_progress({"measuring decode:", "tokens", done_, to_do_});
  }

  // Puts the beginning of a text into a sequence.
  void fill(SequenceId sequence, std::span<const i32> tokens) {
    while (!tokens.empty()) {
      const size_t count = std::min(tokens.size(), size_t(engine_->max_rows()));
      extend(sequence, tokens.first(count));
      tokens = tokens.subspan(count);
      did(i32(count));
    }
  }

  void prefill() {
    build(std::min(flags_.prefill, engine_->max_rows()));
    const std::vector<i32> prompt = some_tokens(flags_.prefill, engine_->info().vocab);
    std::vector<double> speeds;
    tell_progress({"reading prompts:", "rounds", 0, size_t(flags_.rounds + 1)});
    for (i32 round = 0; round <= flags_.rounds; ++round) {
      const SequenceId sequence = engine_->open({});
      speeds.push_back(double(flags_.prefill) / extend(sequence, prompt));
      engine_->close(sequence);
      tell_progress({"reading prompts:", "rounds", size_t(round + 1), size_t(flags_.rounds + 1)});
    }
    const std::string work = fmt::format("prefill of {} tokens, {}", flags_.prefill, name_);
    add({.work = work + ", the first", .unit = "tokens/s", .all = {speeds.front()}});
    speeds.erase(speeds.begin());
    add({.work = work, .unit = "tokens/s", .all = speeds});
  }

  void decode(i32 position) {
    const std::vector<i32> tokens = some_tokens(position + flags_.steps, engine_->info().vocab);
    const std::span<const i32> all = tokens;
    Measurement single{.work = fmt::format("decode at position {}, {}", position, name_), .unit = "ms/token"};
    Measurement joined{
        .work = fmt::format("{}, {} tokens a call{}", single.work, flags_.steps, chosen_by(flags_.sampling)),
        .unit = "ms/token"};
    expect(position, 2);
    for (i32 round = 0; round <= flags_.rounds; ++round) {
      const SequenceId sequence = engine_->open({});
      fill(sequence, all.first(size_t(position)));
      Measurement steps;
      for (i32 s = 0; s < flags_.steps; ++s)
        steps.all.push_back(1e3 * extend(sequence, all.subspan(size_t(position + s), 1)));
      did(flags_.steps);
      engine_->close(sequence);
      const double together = 1e3 * decode_together(position, 1) / flags_.steps;
      if (round == 0) continue;  // warm-up
      single.all.push_back(steps.median());
      joined.all.push_back(together);
    }
    for (Measurement* row : {&single, &joined}) {
      decodes_.push_back(rows_.size());
      add(std::move(*row));
    }
  }

  // Times the steps of `--sequences` sequences at once, as in a batch.
  void decode_shared(i32 position) {
    Measurement row{
        .work = fmt::format("decode of {} sequences at position {}, {}, {} tokens a call{}", flags_.sequences,
                            position, name_, flags_.steps, chosen_by(flags_.sampling)),
        .unit = "tokens/s"};
    expect(position, flags_.sequences);
    for (i32 round = 0; round <= flags_.rounds; ++round) {
      const double seconds = decode_together(position, flags_.sequences);
      if (round > 0) row.all.push_back(flags_.sequences * flags_.steps / seconds);
    }
    add(std::move(row));
  }

  // Times one call that makes all tokens of each of `count` sequences from a position on. Returns seconds.
  double decode_together(i32 position, i32 count) {
    const std::vector<i32> tokens = some_tokens(position + count, engine_->info().vocab);
    const auto prompt = std::span(tokens).first(size_t(position));
    std::vector<StepRequest> requests;
    for (i32 i = 0; i < count; ++i) {
      requests.push_back({engine_->open(program_sampling({.sampling = flags_.sampling}, 0)),
                          std::span(tokens).subspan(size_t(position + i), 1), true});
      fill(requests.back().sequence, prompt);
    }
    const double seconds =
        seconds_of([&] { engine_->step(requests, {.steps = flags_.steps, .logits = false}); });
    did(flags_.steps * count);
    for (const StepRequest& request : requests) engine_->close(request.sequence);
    return seconds;
  }

  const BenchFlags& flags_;
  std::string name_;
  std::unique_ptr<Engine> engine_;
  const Backend& backend_;
  i32 device_, threads_;
  i64 weight_bytes_ = 0;
  size_t done_ = 0, to_do_ = 0;  // tokens of a row
  std::vector<size_t> decodes_;  // indices in rows_ of rows with a ceiling
  Measurement bandwidth_{.work = "read bandwidth", .unit = "GB/s"};
  std::vector<Measurement> rows_;
};

// The command as a reader would type it.
std::string command_of(const Command& command, const BenchFlags& flags, const EngineOptions& options) {
  return fmt::format("heddle bench {}{} --executor {} --threads {}",
                     std::filesystem::path(flags.engine.model).filename().string(),
                     command.typed({"model", "--out", "--json", "--commit", "--executor", "--threads"}),
                     options.executor, options.threads);
}

void run(const Command& command, const BenchFlags& flags) {
  require(
      flags.rounds >= 1 && flags.steps >= 1 && flags.steps <= Engine::kMostSteps && flags.prefill >= 0,
      "[bench] --rounds {}, --steps {}, --prefill {}; rounds must be positive, steps 1 to {}, prefill not "
      "negative",
      flags.rounds, flags.steps, flags.prefill, Engine::kMostSteps);
  require(flags.sequences >= 1, "[bench] --sequences is {}; must be positive", flags.sequences);
  flags.sampling.validate();
  EngineOptions options = flags.engine.options();
  options.max_sequences = flags.sequences;
  if (options.max_context == 0) {
    options.max_context = std::max(flags.prefill, 1);
    for (i32 position : parse_tokens(flags.positions, "--positions")) {
      require(position >= 0, "[bench] --positions has {}; must not be negative", position);
      options.max_context = std::max(options.max_context, position + flags.steps + 1);
    }
  }
  load_planner(flags.engine, options);  // completes the options
  Bench bench(flags, options);
  bench.run();
  const MeasuredWith with = {backend_of(options.executor).device(options.device), flags.commit,
                             command_of(command, flags, options)};
  if (flags.json) print_json(json_of(with, bench.rows()));
  if (!flags.out.empty()) write_measurements(flags.out, with, bench.rows());
}

}  // namespace

void add_bench(CLI::App& app) {
  auto flags = std::make_shared<BenchFlags>();
  Command command(app, "bench", "Measure decode and prefill of a model");
  flags->engine.add_to(command);
  flags->engine.add_artefact_to(command);
  command.argument("--positions", &flags->positions, "positions at which a next token is timed");
  command.argument("--prefill", &flags->prefill, "tokens of the prompt; 0: none");
  command.argument("--steps", &flags->steps, "next tokens per round");
  command.argument("--sequences", &flags->sequences, "above 1: also time decode with this many at once");
  constexpr const char* kChosen = "How tokens are chosen";
  command.argument("--temperature", &flags->sampling.temperature,
                   "how tokens are chosen, as in heddle generate; 0: the most likely token",
                   {.group = kChosen});
  command.argument("--top-k", &flags->sampling.top_k,
                   "with a temperature: among this many most likely tokens; 0: all", {.group = kChosen});
  command.argument("--top-p", &flags->sampling.top_p,
                   "with a temperature: among the most likely tokens that make up this probability",
                   {.group = kChosen});
  command.argument("--rounds", &flags->rounds, "how often each is measured, after a warm-up");
  command.argument("--out", &flags->out, "JSON file for the results", {.names = Names::kNewFile});
  command.argument("--json", &flags->json, "print the results as JSON");
  command.argument("--commit", &flags->commit, "version for the JSON file");
  command.footer(
      "A number is the median over the rounds; a round of decode is the median over its steps.\n"
      "A token reads every weight once; the time of that is shown for the highest bandwidth of memory, which "
      "is\n"
      "measured before and after everything else.\n"
      "Single ops next to torch: heddle bench --suite smoke, which is python3 -m heddle.bench.\n"
      "Example: heddle bench models/storyteller --positions 0,128 --prefill 256 --out results.json");
  command.action([command, flags] { run(command, *flags); });
}

}  // namespace heddle
