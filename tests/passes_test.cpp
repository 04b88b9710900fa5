// Passes on the graph of a decoder: five calls a layer, and every pass can be switched off.
#include "heddle/engine/passes.h"

#include <gtest/gtest.h>

#include "heddle/engine/planner.h"
#include "heddle/model/build/family.h"
#include "tests/support/golden.h"

namespace heddle {
namespace {

// The chains of layer 1, in order, for steps of `rows` rows.
std::vector<std::string> layer(const std::string& model, i32 rows, const PassOptions& passes) {
  const Planner planner(open_model(load_golden(model).folder), cpu_target(2), {.num_pages = 4},
                        {.passes = passes});
  std::vector<std::string> chains;
  const Graph graph = planner.fused(rows, 1);
  for (const Node& node : graph.nodes())
    if (node.name.starts_with("layers.1.")) chains.push_back(chain_name(node));
  return chains;
}

using Chains = std::vector<std::string>;

TEST(Passes, ALlamaLayerIsFiveCalls) {
  const Chains expected = {"rms_norm+linear+rope+kv_append", "attention", "attention_merge+linear+add",
                           "rms_norm+linear+gated_activation", "linear+add"};
  EXPECT_EQ(layer("llama2-tiny", 1, {}), expected);
}

TEST(Passes, AGpt2LayerIsFiveCalls) {
  const Chains expected = {"layer_norm+linear+bias+kv_append", "attention", "attention_merge+linear+bias+add",
                           "layer_norm+linear+bias+activation", "linear+bias+add"};
  EXPECT_EQ(layer("gpt2-tiny", 1, {}), expected);
}

TEST(Passes, ManyRowsMakeTheirNormsOnce) {
  const Chains expected = {
      "rms_norm", "linear+rope+kv_append",   "attention", "attention_merge", "linear+add",
      "rms_norm", "linear+gated_activation", "linear+add"};
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

// Nothing is absorbed that reads more than the limit from each worker.
TEST(Passes, LargeProloguesStayCallsOfTheirOwn) {
  const Chains chains = layer("llama2-tiny", 1, {.max_prologue_bytes = 8});
  EXPECT_EQ(chains.size(), 8u);
}

}  // namespace
}  // namespace heddle
