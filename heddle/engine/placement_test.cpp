#include "heddle/engine/placement.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "heddle/base/error.h"

namespace heddle {
namespace {

// The matrices of a decoder in bf16: hidden, rows of qkv, inner width, vocabulary, layers.
std::vector<PlacedWeight> decoder(i32 hidden, i32 qkv, i32 inner, i32 vocab, i32 layers) {
  std::vector<PlacedWeight> weights;
  auto add = [&](const std::string& name, i32 rows, i32 cols, bool resident) {
    weights.push_back({name, rows, 2, i64(4) * cols, resident});
  };
  for (i32 l = 0; l < layers; ++l) {
    const std::string at = std::to_string(l) + ".";
    add(at + "qkv", qkv, hidden, false);
    add(at + "o", hidden, hidden, true);
    add(at + "gate_up", 2 * inner, hidden, false);
    add(at + "down", hidden, inner, true);
  }
  add("head", vocab, hidden, false);
  return weights;
}

TEST(Placement, LevelWithinTwoPercentForAnyNumberOfWorkers) {
  const auto llama_1b = decoder(2048, 3072, 8192, 128256, 16),
             llama_8b = decoder(4096, 6144, 14336, 128256, 32);
  for (i32 workers = 1; workers <= 148; ++workers)
    for (const auto* weights : {&llama_1b, &llama_8b}) {
      const Placement placement = place(*weights, {.workers = workers});
      EXPECT_LE(placement.imbalance, 0.02) << workers << " workers";
    }
}

TEST(Placement, SharesCoverEveryMatrixInWholeUnits) {
  for (const PlacedWeight& weight : decoder(200, 264, 700, 999, 3)) {
    const Placement placement = place(decoder(200, 264, 700, 999, 3), {.workers = 7});
    const Shares& shares = placement.weights.at(weight.name);
    ASSERT_EQ(shares.size(), 8u);
    EXPECT_EQ(shares.front(), 0);
    EXPECT_EQ(shares.back(), weight.rows);
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
    for (size_t w = 0; w + 1 < shares.size(); ++w) EXPECT_EQ(shares[w] % weight.unit, 0) << weight.name;
  }
}

TEST(Placement, RowsOfTheResidualHaveOneOwner) {
  const Placement placement = place(decoder(200, 264, 700, 999, 3), {.workers = 7});
  for (const char* name : {"0.o", "0.down", "2.o", "2.down"})
    EXPECT_EQ(placement.weights.at(name), placement.resident);
}

// Rows of the residual leave some workers with one row more than others; the head compensates.
TEST(Placement, TheLastMatrixMakesUpTheRest) {
  const Placement placement = place(decoder(200, 264, 700, 20000, 6), {.workers = 7});
  const Shares &head = placement.weights.at("head"), &down = placement.weights.at("0.down");
  i32 most = 0, least = 0;
  for (size_t w = 1; w < 7; ++w) {
    if (down[w + 1] - down[w] > down[size_t(most) + 1] - down[size_t(most)]) most = i32(w);
    if (down[w + 1] - down[w] < down[size_t(least) + 1] - down[size_t(least)]) least = i32(w);
  }
  const auto rows = [&](i32 w) { return head[size_t(w) + 1] - head[size_t(w)]; };
  EXPECT_LT(rows(most), rows(least));
  EXPECT_LE(placement.imbalance, 0.01);
}

TEST(Placement, MoreWorkersThanPanels) {
  const Placement placement = place({{"tiny", 6, 2, 64, false}}, {.workers = 5});
  EXPECT_EQ(placement.weights.at("tiny").back(), 6);
}

TEST(Placement, RefusesNoWorkers) {
  EXPECT_THROW(place({}, {.workers = 0}), Error);
}

}  // namespace
}  // namespace heddle
