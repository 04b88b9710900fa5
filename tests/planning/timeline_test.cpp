// The bytes and flops that a timeline reports for a model's tiles, in runs of the whole engine.
#include "heddle/trace/timeline.h"

#include <gtest/gtest.h>

#include "heddle/engine/engine.h"
#include "heddle/trace/summary.h"
#include "tests/support/golden.h"

namespace heddle {
namespace {

constexpr i32 kPosition = 20, kSteps = 3;

class Timelines : public testing::TestWithParam<const char*> {
 protected:
  Timelines() {
    EngineOptions options{.executor = GetParam(),
                          .workers = 3,
                          .threads = 2,
                          .max_context = 64,
                          .max_sequences = 2,
                          .splits = {.unit = 8}};
    options.run.trace_events = 1000;
    engine = golden_engine("llama3-tiny", options);
    const SequenceId sequence = engine->open({});
    const std::vector<i32> prompt(kPosition, 1);
    const StepRequest chunk{sequence, prompt, false};
    engine->step(std::span(&chunk, 1), {.logits = false});
    const i32 token = 1;
    const StepRequest next{sequence, std::span(&token, 1), true};
    engine->step(std::span(&next, 1), {.steps = kSteps, .logits = false});
  }
  Timeline timeline(i32 positions) const {
    const Program& program = engine->program(1, 1);
    return make_timeline(
        program, engine->trace(program),
        {.executor = GetParam(), .positions = positions, .capacity = program.shape.max_positions()});
  }

  std::unique_ptr<Engine> engine;
};

TEST_P(Timelines, CountEveryWeightOncePerStep) {
  const TraceSummary summary = summarise(timeline(0));
  EXPECT_EQ(summary.steps, u32(kSteps));
  const Program& program = engine->program(1, 1);
  double weights = 0;
  for (const ProgramBuffer& buffer : program.buffers)
    if (buffer.info.kind == BufferKind::kWeight && buffer.info.name.find("embed") == std::string::npos)
      weights += double(buffer.info.bytes);
  const double bytes = summary.total().bytes;
  EXPECT_GE(bytes, weights);
  EXPECT_LT(bytes, 2 * weights) << "activations are read by every tile, but are small";
}

TEST_P(Timelines, CountThePositionsThatPagesHold) {
  const Program& program = engine->program(1, 1);
  double page_bytes = 0;
  for (const ProgramBuffer& buffer : program.buffers)
    if (buffer.info.kind == BufferKind::kPages && buffer.info.name != kScoreEdits)
      page_bytes += double(buffer.info.bytes);
  const double of_position = page_bytes / program.shape.max_positions();
  const double more = summarise(timeline(40)).total().bytes - summarise(timeline(0)).total().bytes;
  EXPECT_NEAR(more, 40 * of_position, 0.01 * more);
}

// Products of three rows in a program of eight take three eighths of its operations.
TEST_P(Timelines, CountTheRowsOfTheStep) {
  const std::vector<i32> three(3, 1);
  const SequenceId sequence = engine->open({});
  const StepRequest request{sequence, three, false};
  engine->step(std::span(&request, 1), {.logits = false});
  const Program& program = engine->program(3, 1);
  ASSERT_EQ(program.shape.rows, 8);
  const auto flops = [&](i32 rows) {
    double sum = 0;
    for (const WorkTimes& work :
         summarise(make_timeline(program, engine->trace(program), {.executor = GetParam(), .rows = rows}))
             .work)
      if (work.ops.find("linear add") != std::string::npos) sum += work.flops;
    return sum;
  };
  EXPECT_GT(flops(3), 0);
  EXPECT_NEAR(flops(3) / flops(8), 3.0 / 8, 0.01);
}

TEST_P(Timelines, KnowTilesWithoutWork) {
  size_t dead = 0, attention = 0;
  const Timeline made = timeline(kPosition);
  for (const TraceLane& lane : made.trace.lanes)
    for (const TraceEvent& event : lane.events) {
      const u32 call = made.at(lane, event).call;
      const bool attends = call != kNoCall && made.ops[made.calls[call].op] == "attention";
      EXPECT_TRUE(attends || !event.dead);
      dead += event.dead, attention += attends;
    }
  EXPECT_GT(dead, 0u) << "few positions make few parts";
  EXPECT_LT(dead, attention);
}

INSTANTIATE_TEST_SUITE_P(Executors, Timelines, testing::Values("threads", "reference"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace heddle
