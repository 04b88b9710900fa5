#include "heddle/trace/predict.h"

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/rules.h"
#include "heddle/trace/calibrate.h"

namespace heddle {
namespace {

constexpr i32 kRows = 4, kCols = 64;

// Two workers each map half of x to y. Worker 0 maps all of y to z, and the next step waits for that.
struct TwoPhases {
  Program program;

  TwoPhases() {
    program.name = "two phases";
    program.topology.workers = 2;
    const OpSpec& op = get_op("activation");
    program.opcodes = {{.ops = {op.name}, .hash = chain_hash({op.name}, 0)}};
    for (const char* name : {"x", "y", "z"})
      program.buffers.push_back(
          {{.name = name, .kind = BufferKind::kActivation, .bytes = kRows * kCols * 4}, -1});
    program.counters = {{2}, {1}};
    program.workers.resize(2);
    for (u32 i = 0; i < 2; ++i) add_call(i);
    for (u32 w = 0; w < 2; ++w)
      add(w,
          {.call = 0, .tile = {0, kRows, 32 * i32(w), 32 * i32(w) + 32}, .waits = {{1, 1}}, .signal = {0, 1}})
          .set_previous(0, true);
    add(0, {.call = 1, .tile = {0, kRows, 0, kCols}, .waits = {{0, 2}}, .signal = {1, 1}});
    for (auto& stream : program.workers) {
      for (Instruction& instruction : stream)
        instruction.set_wait_kind(0, EdgeKind::kCounted), instruction.set_signal_kind(EdgeKind::kCounted);
      stream.emplace_back();
    }
  }

  Instruction& add(u32 worker, Instruction instruction) {
    instruction.opcode = 0;
    return program.workers[worker].emplace_back(instruction);
  }

 private:
  void add_call(u32 index) {
    const OpSpec& op = get_op("activation");
    std::vector<std::byte> args = op.defaults;
    for (const Field& field : op.fields)
      if (field.is_tensor()) {
        Tensor& value = field.tensor(args.data()) = dense(DType::kF32, {kRows, kCols});
        value.buffer = field.writes() ? index + 1 : index;
      }
    program.calls.push_back({.opcode = 0, .name = index == 0 ? "first" : "second", .args = {args}});
  }
};

// Only bytes cost: half of x and half of y are 1,024 bytes, and the second phase has 2,048.
const CostModel kModel = {
    .ns_per_stream_byte = 1, .ns_per_byte = 1, .ns_per_flop = 0, .ns_per_tile = 100, .ns_per_message = 50};

TEST(Predict, CountsWorkAndMessages) {
  const TwoPhases two;
  const Prediction found = predict(two.program, kModel);
  // Worker 0 goes from one step to the next without waiting for a message; worker 1 is 50 later.
  EXPECT_DOUBLE_EQ(found.step, 1124 + 2148 + 2 * 50.0 + 50 - 50);
  EXPECT_EQ(found.waits, 3u);
  EXPECT_DOUBLE_EQ(found.path_work, 1124 + 2148.0);
  EXPECT_EQ(found.messages, 2u);
  EXPECT_DOUBLE_EQ(found.path_work + found.path_messages, found.step);
  ASSERT_EQ(found.path.size(), 2u);
  EXPECT_EQ(found.path[1].worker, 0u);
  EXPECT_TRUE(found.path[1].by_message);
  EXPECT_DOUBLE_EQ(found.balance, (1124 + 2148 + 1124) / 2.0 / (1124 + 2148));
  ASSERT_EQ(found.trace.lanes.size(), 2u);
  EXPECT_EQ(found.trace.lanes[0].events.size(), 4u);
}

TEST(Predict, EdgesInsideAWorkerAreFree) {
  TwoPhases two;
  two.program.workers[1].erase(two.program.workers[1].begin());
  two.program.workers[0][0].tile[3] = kCols;
  two.program.counters[0].total = 1;
  for (Instruction& instruction : two.program.workers[0]) instruction.set_wait_kind(0, EdgeKind::kInSm);
  const Prediction found = predict(two.program, kModel);
  EXPECT_DOUBLE_EQ(found.step, 2 * 2148.0);
  EXPECT_EQ(found.messages, 0u);
}

TEST(Predict, WaitsThatNeverEndAreAnError) {
  TwoPhases two;
  two.program.counters[0].total = 3;
  EXPECT_THROW(predict(two.program, kModel), Error);
}

// The prediction of a step is as long as the step was: messages get the time that means do not explain.
TEST(Calibrate, FindsTheCostsOfATrace) {
  const TwoPhases two;
  CostModel other = kModel;
  other.factors["activation"] = 3;
  const CostModel found = calibrate(two.program, predict(two.program, other).trace, kModel);
  EXPECT_GE(found.ns_per_message, 50);
  const double step = predict(two.program, other).step;
  EXPECT_NEAR(predict(two.program, found).step, step, 0.01 * step);
  EXPECT_THROW(calibrate(two.program, {}, kModel), Error);
}

TEST(Calibrate, FilesComeBackAsTheyWere) {
  CostModel model = kModel;
  model.factors["rms_norm+linear"] = 1.5;
  const CostModel back = parse_costs(to_json(model), "costs", {});
  EXPECT_EQ(to_json(back), to_json(model));
  EXPECT_EQ(parse_costs(R"({"ns_per_tile": 7})", "costs", kModel).ns_per_message, 50);
}

TEST(Calibrate, RefusesWhatIsNoFileOfCosts) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "not valid JSON"},
      {"[1]", "no JSON object"},
      {R"({"ns_per_byte": -1})", "ns_per_byte = -1; must be a number, 0 to 1e9"},
      {R"({"ns_per_byte": 1e300})", "ns_per_byte"},
      {R"({"ns_per_byte": "1"})", "ns_per_byte"},
      {R"({"ns_per_stream_byte": 0})", "must be more"},
      {R"({"ns_per_bite": 1})", "ns_per_bite is no cost; known are factors, ns_per_stream_byte"},
      {R"({"factors": [1]})", "factors must be an object"},
      {R"({"factors": {"linear": null}})", "factors of linear"},
  };
  for (const auto& [text, words] : cases) {
    try {
      parse_costs(text, "costs.json", {});
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo);
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("[costs.json]"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace heddle
