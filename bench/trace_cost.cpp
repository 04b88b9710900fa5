// The cost of tracing a run. Two engines do decode steps of a model in turn, and one of them records every
// instruction. Each has one thread, which never waits, and only its time on the processor counts, so that
// other work of the machine matters little.
//   bench_trace_cost MODEL [WORKERS] [ROUNDS]
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <fmt/core.h>

#include "heddle/engine/builtins.h"
#include "heddle/engine/engine.h"
#include "heddle/model/build/family.h"

namespace heddle {
namespace {

constexpr i32 kPosition = 128, kSteps = 64;

class Decoder {
 public:
  Decoder(const char* model, i32 workers, bool traced) {
    EngineOptions options{
        .workers = workers, .threads = 1, .max_context = kPosition + kSteps + 1, .max_sequences = 1};
    if (traced) options.run.trace_events = 1u << 16;
    engine_ = std::make_unique<Engine>(open_model(model), options);
    sequence_ = engine_->open({});
    const std::vector<i32> prompt(kPosition, 1);
    std::span<const i32> left = prompt;
    while (!left.empty()) {
      const StepRequest chunk{sequence_, left.first(std::min(left.size(), size_t(engine_->max_rows()))),
                              false};
      engine_->step(std::span(&chunk, 1), {.logits = false});
      left = left.subspan(chunk.tokens.size());
    }
  }
  // Microseconds of the processor for a step.
  double run() {
    engine_->rewind(sequence_, kPosition);
    const i32 token = 1;
    const StepRequest next{sequence_, std::span(&token, 1), true};
    const std::clock_t begin = std::clock();
    engine_->step(std::span(&next, 1), {.steps = kSteps, .logits = false});
    return double(std::clock() - begin) * (1e6 / CLOCKS_PER_SEC) / kSteps;
  }

 private:
  std::unique_ptr<Engine> engine_;
  SequenceId sequence_ = 0;
};

double quantile(std::vector<double> values, double at) {
  std::sort(values.begin(), values.end());
  return values[size_t(at * double(values.size() - 1))];
}

void measure(const char* model, i32 workers, int rounds) {
  Decoder plain(model, workers, false), traced(model, workers, true);
  std::vector<double> off, on, ratio;
  for (int round = -3; round < rounds; ++round) {  // the first ones warm up
    double a = 0, b = 0;
    if (round % 2 == 0)
      a = plain.run(), b = traced.run();
    else
      b = traced.run(), a = plain.run();
    if (round >= 0) off.push_back(a), on.push_back(b), ratio.push_back(b / a);
  }
  const auto show = [&](const char* what, double at) {
    const double a = quantile(off, at), b = quantile(on, at);
    fmt::print("{:<16} {:8.1f} us a step, traced {:8.1f}: {:+.1f} %\n", what, a, b, 100 * (b / a - 1));
  };
  show("least", 0), show("10 % quantile", 0.1), show("median", 0.5);
  fmt::print("pair by pair: median {:+.1f} %, quartiles {:+.1f} to {:+.1f} %\n",
             100 * (quantile(ratio, 0.5) - 1), 100 * (quantile(ratio, 0.25) - 1),
             100 * (quantile(ratio, 0.75) - 1));
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  if (argc < 2) return fmt::print(stderr, "bench_trace_cost MODEL [WORKERS] [ROUNDS]\n"), 2;
  heddle::register_builtins();
  heddle::measure(argv[1], argc > 2 ? std::atoi(argv[2]) : 0, argc > 3 ? std::atoi(argv[3]) : 1000);
}
