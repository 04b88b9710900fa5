#include "apps/heddle/measure/decode_run.h"

#include <algorithm>

#include "heddle/base/stopwatch.h"

namespace heddle {

DecodeRun::DecodeRun(Engine& engine, i32 position, i32 rows)
    : engine_(engine), position_(position), tokens_(size_t(rows), 1), sequence_(engine.open({})) {
  go_to_position();
}

DecodeRun::~DecodeRun() {
  engine_.close(sequence_);
}

void DecodeRun::go_to_position() {
  engine_.rewind(sequence_, position_);  // may keep fewer positions
  while (const i32 left = position_ - engine_.length(sequence_)) {
    const std::vector<i32> tokens(size_t(std::min(left, engine_.max_rows())), 1);
    const StepRequest chunk{sequence_, tokens, false};
    engine_.step(std::span(&chunk, 1), {.logits = false});
  }
}

double DecodeRun::run(i32 steps, bool logits) {
  go_to_position();
  const StepRequest next{sequence_, tokens_, true};
  const Stopwatch watch;
  result_ = engine_.step(std::span(&next, 1), {.steps = steps, .logits = logits});
  return watch.seconds();
}

u32 longest_stream(const Program& program) {
  size_t longest = 0;
  for (const auto& stream : program.workers) longest = std::max(longest, stream.size());
  return u32(longest);
}

}  // namespace heddle
