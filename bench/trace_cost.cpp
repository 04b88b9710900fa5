// The cost of tracing a run: decode steps of the shipped model, plain and with a record of every instruction. Rows of the gate.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bench/rows.h"
#include "heddle/engine/builtins.h"
#include "heddle/engine/engine.h"
#include "heddle/model/build/family.h"

namespace heddle {
namespace {

// One thread, which never waits.
constexpr i32 kPosition = 128, kSteps = 64;

class Decoder {
 public:
  explicit Decoder(bool traced) {
    EngineOptions options{.threads = 1, .max_context = kPosition + kSteps + 1, .max_sequences = 1};
    if (traced) options.run.trace_events = 1u << 16;
    engine_ = std::make_unique<Engine>(open_model(HEDDLE_ROOT "/models/storyteller"), options);
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
  void run() {
    engine_->rewind(sequence_, kPosition);
    const i32 token = 1;
    const StepRequest next{sequence_, std::span(&token, 1), true};
    engine_->step(std::span(&next, 1), {.steps = kSteps, .logits = false});
  }

 private:
  std::unique_ptr<Engine> engine_;
  SequenceId sequence_ = 0;
};

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  using namespace heddle;
  register_builtins();
  bench::Rows rows(argc, argv);
  for (const bool traced : {false, true}) {
    const std::string name = traced ? "64 steps of the storyteller, traced" : "64 steps of the storyteller";
    if (!rows.wants(name)) {
      rows.measure(name, [] {});
      continue;
    }
    Decoder decoder(traced);
    rows.measure(name, [&] { decoder.run(); });
  }
}
