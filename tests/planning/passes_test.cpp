// Passes on the graph of a decoder: five calls a layer, and every pass can be switched off.
#include "heddle/engine/passes.h"

#include <gtest/gtest.h>

#include "heddle/engine/planner.h"
#include "heddle/ir/check/check.h"
#include "heddle/ir/rules.h"
#include "heddle/model/build/family.h"
#include "heddle/ops/add/add.h"
#include "heddle/ops/experts/expert_linear.h"
#include "heddle/ops/linear/linear.h"
#include "heddle/ops/rms_norm/rms_norm.h"
#include "tests/support/golden.h"

namespace heddle {
namespace {

// The chains of layer 1, in order, for steps of `rows` rows.
std::vector<std::string> layer(const std::string& model, i32 rows, const PassOptions& passes) {
  const Planner planner(open_model(load_golden(model).folder), cpu_target(2),
                        {.context = 512, .num_pages = 4}, {.passes = passes});
  std::vector<std::string> chains;
  const Graph graph = planner.fused(rows, 1);
  for (const Node& node : graph.nodes())
    if (node.name.starts_with("layers.1.")) chains.push_back(chain_name(node));
  return chains;
}

using Chains = std::vector<std::string>;

TEST(Passes, ALlamaLayerIsFiveCalls) {
  const Chains expected = {"rms_norm+linear+rope_rows+kv_append", "attention", "attention_merge+linear+add",
                           "rms_norm+linear+gated_activation", "linear+add"};
  EXPECT_EQ(layer("llama2-tiny", 1, {}), expected);
}

TEST(Passes, AGpt2LayerIsFiveCalls) {
  const Chains expected = {"layer_norm+linear+bias+kv_append", "attention", "attention_merge+linear+bias+add",
                           "layer_norm+linear+bias+activation", "linear+bias+add"};
  EXPECT_EQ(layer("gpt2-tiny", 1, {}), expected);
}

// A norm whose result several ops read, or a product by heads, remains a separate call.
TEST(Passes, ADeepseekLayerIsElevenCalls) {
  const Chains expected = {"rms_norm+linear+bias+rope_rows+kv_append",
                           "rms_norm+linear+rope_rows",
                           "rms_norm",
                           "kv_append",
                           "head_linear",
                           "attention",
                           "attention_merge",
                           "head_linear",
                           "linear+bias+add",
                           "rms_norm+linear+gated_activation",
                           "linear+add"};
  EXPECT_EQ(layer("deepseek_v3-tiny", 1, {}), expected);
}

// A value that a chain passes on inside cannot be read anywhere else.
TEST(Passes, ACallThatReadsAValueTwiceIsNotAbsorbed) {
  for (bool prologue : {false, true}) {
    Graph graph;
    const Tensor x = graph.add_tensor("x", BufferKind::kStepDevice, DType::kF32, {1, 16});
    Weight w;
    w.data = dense(DType::kF32, {16, 16});
    w.interleave = 1;
    w.data.buffer = graph.add_buffer({.name = "w", .kind = BufferKind::kWeight, .bytes = w.bytes()});
    const Tensor scale = graph.add_tensor("scale", BufferKind::kTable, DType::kF32, {16});
    const Tensor norm = graph.call("rms_norm", "norm", RmsNorm{.x = x, .weight = scale}).y;
    const Tensor y = graph.call("linear", "linear", Linear{.x = prologue ? norm : x, .w = w}).y;
    graph.call("add", "add", Add{.a = y, .b = prologue ? norm : y});
    run_passes(graph, {});
    Chains chains;
    for (const Node& node : graph.nodes()) chains.push_back(chain_name(node));
    EXPECT_EQ(chains, prologue ? (Chains{"rms_norm", "linear+add"}) : (Chains{"rms_norm", "linear", "add"}));
  }
}

// Both the router and the experts read the norm.
TEST(Passes, AMixtureOfExpertsIsSevenCalls) {
  const Chains expected = {"rms_norm+linear+rope_rows+kv_append",
                           "attention",
                           "attention_merge+linear+add",
                           "rms_norm",
                           "linear",
                           "route",
                           "expert_linear+gated_activation",
                           "expert_linear",
                           "expert_sum",
                           "add"};
  EXPECT_EQ(layer("mixtral-tiny", 1, {}), expected);
}

// Its rows are not rows of its output, so an epilogue that adds by rows cannot be fused.
TEST(Passes, WhatKnowsRowsIsNoEpilogueOfExperts) {
  Graph graph;
  graph.set_live(LiveRows::kAll);
  const auto tensor = [&](const char* name, DType dtype, Sizes shape) {
    return graph.add_tensor(name, BufferKind::kActivation, dtype, shape);
  };
  ExpertLinear args{.step = tensor("step", DType::kU8, {i32(StepHost::bytes({}))}),
                    .choice = tensor("choice", DType::kI32, {1, 2}),
                    .x = tensor("x", DType::kF32, {1, 8})};
  args.w.data = dense(DType::kF32, {16, 8});
  args.w.interleave = 1, args.w.matrices = 3;
  args.w.data.buffer = graph.add_buffer({.name = "w", .kind = BufferKind::kWeight, .bytes = args.w.bytes()});
  const Tensor y = graph.call("expert_linear", "experts", args).y;
  graph.call("add", "sum", Add{.a = y, .b = tensor("b", DType::kF32, {2, 16})});
  run_passes(graph, {});
  EXPECT_EQ(graph.nodes().size(), 2u);
}

// A main op that names no input takes no prologue, and one that names no output takes no epilogues.
TEST(Passes, ChainsAroundAHeadLinearAreRefused) {
  const Planner planner(open_model(load_golden("deepseek_v3-tiny").folder), cpu_target(2),
                        {.context = 512, .num_pages = 4}, {});
  const Program good = planner.program(1, 1);
  EXPECT_TRUE(check(good).ok());
  const auto refusal = [&](const Chains& ops, u32 main) {
    Program program = good;
    for (Opcode& opcode : program.opcodes)
      if (opcode.ops == Chains{"head_linear"}) opcode.ops = ops, opcode.main = main;
    const CheckReport report = check(program);
    return report.ok() ? "" : report.faults[0].message;
  };
  EXPECT_NE(refusal({"attention_merge", "head_linear"}, 1).find("is no chain"), std::string::npos);
  EXPECT_NE(refusal({"head_linear", "activation"}, 0).find("is no chain"), std::string::npos);
}

// Their attention has one part, so there is nothing to merge.
TEST(Passes, ManyRowsMakeTheirNormsOnce) {
  const Chains expected = {"rms_norm", "linear+rope_rows+kv_append", "attention", "linear+add",
                           "rms_norm", "linear+gated_activation",    "linear+add"};
  EXPECT_EQ(layer("llama2-tiny", 64, {}), expected);
}

TEST(Passes, EachCanBeSwitchedOff) {
  const Chains no_prologues = layer("llama2-tiny", 1, {.fuse_prologues = false});
  const Chains no_epilogues = layer("llama2-tiny", 1, {.fuse_epilogues = false});
  const Chains none = layer("llama2-tiny", 1, {.fuse_epilogues = false, .fuse_prologues = false});
  EXPECT_EQ(no_prologues.size(), 8u);
  EXPECT_EQ(no_epilogues.size(), 10u);
  EXPECT_EQ(none.size(), 13u);
  for (const std::string& chain : none) EXPECT_EQ(chain.find('+'), std::string::npos);
}

// A prologue that reads more than the limit on each worker is not fused.
TEST(Passes, LargeProloguesStayCallsOfTheirOwn) {
  const Chains chains = layer("llama2-tiny", 1, {.max_prologue_bytes = 8});
  EXPECT_EQ(chains.size(), 8u);
}

}  // namespace
}  // namespace heddle
