#include "heddle/engine/arena.h"

#include <random>

#include <gtest/gtest.h>

#include "heddle/ir/tile_grid.h"
#include "heddle/ops/activation/activation.h"
#include "heddle/ops/add/add.h"
#include "heddle/ops/copy/copy.h"

namespace heddle {
namespace {

// Random calls of add and activation on earlier tensors of one shape.
Graph random_graph(u64 seed, i32 calls) {
  std::mt19937_64 random(seed);
  Graph graph;
  std::vector<Tensor> made = {graph.add_tensor("in", BufferKind::kStepDevice, DType::kF32, {4, 33})};
  const auto any = [&] { return made[random() % made.size()]; };
  for (i32 i = 0; i < calls; ++i) {
    const std::string name = "n" + std::to_string(i);
    made.push_back(random() % 2 ? graph.call("add", name, Add{.a = any(), .b = any()}).y
                                : graph.call("activation", name, Activation{.x = any()}).y);
  }
  graph.call("copy", "out",
             Copy{.x = made.back(), .y = graph.add_tensor("out", BufferKind::kOutput, DType::kF32, {4, 33})});
  return graph;
}

struct Life {
  size_t first = ~size_t{0}, last = 0;
};

std::vector<Life> lives_of(const Graph& graph) {
  std::vector<Life> lives(graph.buffers().size());
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const Node& node = graph.nodes()[n];
    for (const TileCoord& tile : default_tiles(node.main_part().op->axes(node.main_part().args.data(), {})))
      for (const Region& region : node_regions(node, tile)) {
        lives[region.buffer].first = std::min(lives[region.buffer].first, n);
        lives[region.buffer].last = std::max(lives[region.buffer].last, n);
      }
  }
  return lives;
}

TEST(Arena, BuffersThatLiveTogetherLieApart) {
  for (u64 seed = 0; seed < 50; ++seed) {
    const Graph graph = random_graph(seed, 20);
    const ArenaPlan plan = plan_arena(graph, false);
    const auto lives = lives_of(graph);
    for (size_t a = 0; a < lives.size(); ++a)
      for (size_t b = 0; b < a; ++b) {
        if (plan.offset[a] < 0 || plan.offset[b] < 0) continue;
        const i64 bytes = graph.buffers()[a].bytes;
        const bool apart =
            plan.offset[a] + bytes <= plan.offset[b] || plan.offset[b] + bytes <= plan.offset[a];
        // In place: the call that writes one is the last that reads the other.
        const bool in_turn = lives[a].last <= lives[b].first || lives[b].last <= lives[a].first;
        EXPECT_TRUE(apart || in_turn)
            << "seed " << seed << ": " << graph.buffers()[a].name << " and " << graph.buffers()[b].name;
      }
  }
}

TEST(Arena, AChainLivesInOnePlace) {
  Graph graph;
  Tensor x = graph.add_tensor("in", BufferKind::kStepDevice, DType::kF32, {4, 33});
  for (int i = 0; i < 6; ++i) x = graph.call("activation", "n" + std::to_string(i), Activation{.x = x}).y;
  EXPECT_LE(plan_arena(graph, false).bytes, 4 * 33 * 4);
}

TEST(Arena, StateOutputsAndKeptBuffersHaveMemoryOfTheirOwn) {
  Graph graph = random_graph(1, 8);
  graph.buffers()[3].resident = true;
  const ArenaPlan plan = plan_arena(graph, false), kept = plan_arena(graph, true);
  for (size_t b = 0; b < graph.buffers().size(); ++b) {
    const Buffer& buffer = graph.buffers()[b];
    const bool may_share = buffer.kind == BufferKind::kActivation && !buffer.resident;
    EXPECT_EQ(plan.offset[b] >= 0, may_share) << buffer.name;
    EXPECT_EQ(kept.offset[b], -1);
  }
  EXPECT_EQ(kept.bytes, 0);
}

}  // namespace
}  // namespace heddle
