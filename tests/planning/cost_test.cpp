// Costs of a program's tiles: each weight counts once for any number of workers, and pages count what
// attention reads.
#include "heddle/ir/program/cost.h"

#include <gtest/gtest.h>

#include "heddle/model/build/family.h"
#include "tests/support/golden.h"

namespace heddle {
namespace {

Program program_of(const char* model, i32 workers, i32 context = 64) {
  EngineOptions options{.workers = workers, .max_context = context, .max_sequences = 1, .page_size = 16};
  return make_planner(open_model(load_golden(model).folder), options).program(1, 1);
}

struct Sum {
  double weights = 0, pages = 0, flops = 0;
};

Sum sum_of(const Program& program) {
  const auto costs = costs_of(program);
  Sum sum;
  for (size_t w = 0; w < program.workers.size(); ++w)
    for (size_t i = 0; i < program.workers[w].size(); ++i) {
      const Instruction& instruction = program.workers[w][i];
      const bool pages =
          instruction.opcode < kNopOpcode && program.opcodes[instruction.opcode].ops.front() == "attention";
      (pages ? sum.pages : sum.weights) += costs[w][i].stream_bytes;
      sum.flops += costs[w][i].flops;
    }
  return sum;
}

TEST(Cost, CountsEachWeightOnce) {
  const Program program = program_of("llama2-tiny", 1);
  double weights = 0;  // a look-up reads one row
  for (const ProgramBuffer& buffer : program.buffers)
    if (buffer.info.kind == BufferKind::kWeight && buffer.info.name != "embed")
      weights += double(buffer.info.bytes);
  const double sum = sum_of(program).weights;
  EXPECT_LE(sum, weights);
  EXPECT_GT(sum, 0.9 * weights) << "rows that fill up last panels are not counted";
  EXPECT_EQ(sum_of(program_of("llama2-tiny", 5)).weights, sum);
}

TEST(Cost, DoesNotGrowWithThePagesThereAre) {
  const Sum few = sum_of(program_of("llama2-tiny", 2)), many = sum_of(program_of("llama2-tiny", 2, 128));
  EXPECT_GT(few.pages, 0);
  EXPECT_EQ(few.pages, many.pages);
  EXPECT_EQ(few.flops, many.flops);
}

// A tile reads the panels of one expert, though it may be any of them.
TEST(Cost, OfAnExpertIsThatOfOne) {
  const Program program = program_of("mixtral-tiny", 1);
  double all = 0;
  for (const ProgramBuffer& buffer : program.buffers)
    if (buffer.info.kind == BufferKind::kWeight) all += double(buffer.info.bytes);
  EXPECT_LT(sum_of(program).weights, 0.8 * all) << "a token takes 2 of 5 experts";
}

TEST(Cost, ModelTakesTheLongerOfStreamAndWork) {
  const CostModel model{.ns_per_stream_byte = 2,
                        .ns_per_byte = 1,
                        .ns_per_flop = 0.5,
                        .ns_per_tile = 10,
                        .factors = {{"slow", 3}}};
  EXPECT_DOUBLE_EQ(model.tile_ns("op", {.stream_bytes = 100, .bytes = 20, .flops = 60}), 200);
  EXPECT_DOUBLE_EQ(model.tile_ns("op", {.stream_bytes = 5, .bytes = 20, .flops = 60}), 40);
  EXPECT_DOUBLE_EQ(model.tile_ns("slow", {.stream_bytes = 5, .bytes = 20, .flops = 60}), 100);
  EXPECT_EQ(model.message_ns(EdgeKind::kInSm), 0);
  EXPECT_GT(model.message_ns(EdgeKind::kCounted), 0);
}

}  // namespace
}  // namespace heddle
