#include "heddle/tile/reduce_plan.h"

#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "tests/toolkit/random_layouts.h"

namespace heddle::tile {
namespace {

// Adds as the stages say, and compares with sums over rows or columns.
void sums_are_right(const Distribution& who, Over over) {
  const ReduceStages stages = reduce_stages(who, over);
  std::vector<std::vector<i64>> held(size_t(who.threads()));
  ASSERT_EQ(stages.outputs.size() * stages.in_thread.size(), who.each());
  for (i32 t = 0; t < who.threads(); ++t)
    for (i32 j = 0; j < stages.outputs.size(); ++j) {
      i64 sum = 0;
      for (i32 i = 0; i < stages.in_thread.size(); ++i)
        sum += 1 + who(t, stages.outputs(j) + stages.in_thread(i));
      held[size_t(t)].push_back(sum);
    }
  for (i32 m = 0; m < stages.masks; ++m) {
    const auto before = held;
    for (i32 t = 0; t < who.threads(); ++t)
      for (size_t j = 0; j < before[0].size(); ++j)
        held[size_t(t)][j] += before[size_t(t / 32 * 32 + (t % 32 ^ stages.mask[m]))][j];
  }
  // One lane of each warp that holds an output: together they have its sum, and the stages say which warps they are.
  i32 lane_bits = 0;
  for (i32 m = 0; m < stages.masks; ++m) lane_bits |= stages.mask[m];
  std::map<i32, std::vector<i32>> holders;
  std::map<i32, i64> sums;
  const bool cols = over == Over::kColumns;
  for (i32 t = 0; t < who.threads(); ++t)
    for (i32 j = 0; j < stages.outputs.size() && (t & lane_bits) == 0; ++j) {
      const Element at = who.element(t, stages.outputs(j));
      holders[cols ? at.row : at.col].push_back(t);
      sums[cols ? at.row : at.col] += held[size_t(t)][size_t(j)];
    }
  ASSERT_EQ(i32(holders.size()), cols ? who.rows : who.cols);
  for (const auto& [output, threads] : holders) {
    i64 wanted = 0;
    for (i32 i = 0; i < (cols ? who.cols : who.rows); ++i)
      wanted += 1 + (cols ? output + who.rows * i : i + who.rows * output);
    ASSERT_EQ(sums[output], wanted) << output;
    std::vector<i32> stated;
    for (i32 w = 0; w < stages.warps.size(); ++w) stated.push_back(threads[0] + 32 * stages.warps(w));
    ASSERT_EQ(threads, stated);
  }
}

TEST(ReducePlan, StagesAddTheFragmentsOfInstructions) {
  for (const Distribution& who :
       {mma_sums(), wgmma_sums(64), wgmma_sums(176), mma_left(2), matrices(4), matrices_transposed(4),
        mma_sums().repeat({2, 4}, {1, 4}), wgmma_sums(64).repeat({1, 1}, {1, 2})})
    for (const Over over : {Over::kRows, Over::kColumns}) sums_are_right(who, over);
  // The rows of attention's scores: 2 outputs a thread, two exchanges, no shared memory.
  const ReduceStages rows = reduce_stages(wgmma_sums(128), Over::kColumns);
  EXPECT_EQ(rows.outputs.size(), 2);
  EXPECT_EQ(rows.masks, 2);
  EXPECT_EQ(rows.mask[0], 1);
  EXPECT_EQ(rows.mask[1], 2);
  EXPECT_TRUE(rows.stays_in_warp());
  EXPECT_FALSE(reduce_stages(wgmma_sums(128), Over::kRows).stays_in_warp());
}

void takes_each_element_once(const ReducePlan& plan) {
  std::vector<i32> taken(size_t(plan.reduced.size()));
  for (i32 part = 0; part < plan.parts(); ++part)
    for (i32 i = 0; i < plan.each(); ++i)
      if (plan.has(part, i))
        for (i32 e = 0; e < (plan.along_reduced ? plan.width : 1); ++e)
          ++taken[size_t(plan.first(part, i) + e)];
  ASSERT_EQ(taken, std::vector<i32>(taken.size(), 1));
  // Each thread of a CTA has a part of one output, and a team has every part of its CTA once.
  std::set<std::pair<i32, i32>> seen;
  for (i32 t = 0; t < plan.threads; ++t) {
    ASSERT_LT(plan.team(t), plan.teams());
    ASSERT_LT(plan.part(t, 0), plan.lanes * plan.warps);
    ASSERT_TRUE(seen.insert({plan.team(t), plan.part(t, 0)}).second);
  }
}

TEST(ReducePlan, AnyMixOfModesTakesEachElementOnce) {
  RandomLayouts random(8);
  i32 with_words = 0;
  for (i32 round = 0; round < 500; ++round) {
    // The modes of a dense tensor, each reduced or kept.
    Layout reduced, kept;
    i32 stride = 1;
    for (i32 i = random.number(1, 4); i > 0; --i) {
      const i32 shape = random.number(1, 40);
      Layout& part = random.number(0, 1) == 0 ? reduced : kept;
      part = part.with(shape, stride), stride *= shape;
    }
    if (reduced.rank == 0) reduced = line(1, 0);
    if (kept.rank == 0) kept = line(1, 0);
    const ReduceLimits limits{.element_bytes = random.one_of<i32>({2, 4}),
                              .threads = random.one_of<i32>({32, 128, 256, 1024})};
    const ReducePlan plan = plan_reduce(reduced, kept, limits);
    takes_each_element_once(plan);
    // Words are neighbours in memory and aligned, whatever the output.
    const Layout& along = plan.along_reduced ? plan.reduced : plan.kept;
    const Layout& across = plan.along_reduced ? plan.kept : plan.reduced;
    for (i32 i = 0; i + plan.width <= along.size(); i += plan.width)
      for (i32 e = 0; e < plan.width; ++e) ASSERT_EQ(along(i + e), along(i) + e);
    for (i32 i = 0; i < across.size(); ++i) ASSERT_EQ((across(i) + along(0)) % plan.width, 0);
    with_words += plan.width > 1 ? 1 : 0;
  }
  EXPECT_GT(with_words, 50);
}

TEST(ReducePlan, SizesDecideTheStages) {
  const ReduceLimits limits{.element_bytes = 2, .threads = 256};
  const ReducePlan tiny = plan_reduce(line(64), line(4096, 64), limits);
  EXPECT_EQ(tiny.lanes, 8);
  EXPECT_FALSE(tiny.has_cta_stage());
  const ReducePlan rows = plan_reduce(line(8192), line(4096, 8192), limits);
  EXPECT_EQ(rows.width, 8);
  EXPECT_EQ(rows.lanes * rows.warps, 128);
  EXPECT_EQ(rows.each(), 8);
  EXPECT_FALSE(rows.has_cluster_stage());
  const ReducePlan long_rows = plan_reduce(line(1 << 20), line(16, 1 << 20), limits);
  EXPECT_TRUE(long_rows.has_cta_stage() && long_rows.has_cluster_stage());
  const ReducePlan columns = plan_reduce(line(4096, 512), line(512), limits);
  EXPECT_FALSE(columns.along_reduced);
  EXPECT_EQ(columns.lanes, 1) << "lanes have neighbouring outputs";
  EXPECT_EQ(columns.outputs_at_once(), 32 * 8);
  const ReducePlan odd = plan_reduce(line(8191), line(16, 8191), limits);
  EXPECT_EQ(odd.width, 1) << "rows begin anywhere";
}

}  // namespace
}  // namespace heddle::tile
