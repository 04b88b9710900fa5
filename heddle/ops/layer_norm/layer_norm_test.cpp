// Tests how the gradient of a norm cuts its sums into parts.
#include <exception>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "heddle/ir/cases.h"
#include "heddle/ir/registry.h"
#include "heddle/ops/layer_norm/layer_norm_backward.h"

namespace heddle {
namespace {

LayerNormBackward inferred(i32 rows, i32 columns, i32 part_rows) {
  LayerNormBackward args;
  args.x = args.dy = input(DType::kBf16, {rows, columns});
  args.weight = input(DType::kBf16, {columns});
  args.part_rows = part_rows;
  get_op("layer_norm_backward").infer(reinterpret_cast<std::byte*>(&args));
  return args;
}

TEST(PartsOfNorms, AreAsManyAsSuitTheMatrix) {
  const auto parts = [](i32 rows, i32 columns, i32 part_rows) {
    const LayerNormBackward args = inferred(rows, columns, part_rows);
    EXPECT_EQ(args.dbias_parts.size[0], args.parts());
    return std::pair(args.most_rows(), args.parts());
  };
  EXPECT_EQ(parts(100, 4096, 0), std::pair(4, 25));
  EXPECT_EQ(parts(32768, 4096, 0), std::pair(125, 263)) << "two CTAs an SM";
  EXPECT_EQ(parts(131072, 1024, 0), std::pair(166, 790));
  EXPECT_EQ(parts(1 << 20, 8192, 0), std::pair(993, 1056)) << "eight waves";
  EXPECT_EQ(parts(4096, 16384, 0), std::pair(32, 128));
  EXPECT_EQ(parts(4096, 24576, 0), std::pair(118, 35)) << "clusters of three, in one wave";
  EXPECT_EQ(parts(4096, 24584, 0), std::pair(147, 28)) << "of four";
  EXPECT_EQ(parts(512, 16384, 0), std::pair(8, 64));
  EXPECT_EQ(parts(100, 4096, 3), std::pair(3, 34));
}

TEST(PartsOfNorms, HaveRowsThatTakeTurns) {
  const LayerNormBackward args = inferred(19, 64, 7);
  const OpSpec& op = get_op("layer_norm_backward");
  ASSERT_EQ(op.axes(reinterpret_cast<const std::byte*>(&args), {}).front().extent, 3);
  // The part of each row.
  std::vector<i32> part_of_row(19, -1);
  for (i32 part = 0; part < 3; ++part) {
    std::vector<Region> regions;
    op.regions(reinterpret_cast<const std::byte*>(&args), {part, part + 1}, regions);
    for (const Region& region : regions)
      if (region.buffer == args.dx.buffer && region.access == Access::kWrite && region.run == 64 * 2)
        for (i64 n = 0; n < region.count[0] * region.count[1]; ++n)
          part_of_row.at(size_t(region.offset / region.run + n * 3)) = part;
  }
  for (i32 row = 0; row < 19; ++row) EXPECT_EQ(part_of_row[size_t(row)], row % 3) << row;
}

TEST(PartsOfNorms, OfWideRowsAreOfClusters) {
  const OpSpec& op = get_op("layer_norm_backward");
  for (const auto& [columns, cluster] :
       {std::pair(8192, 1u), {12288, 2}, {16384, 2}, {16392, 3}, {131072, 16}}) {
    const LayerNormBackward args = inferred(4096, columns, 0);
    const auto* bytes = reinterpret_cast<const std::byte*>(&args);
    const KernelPlan plan = op.kernel(bytes, {.arch = 90, .shared_bytes = 227 << 10}, {});
    ASSERT_EQ(plan.launches.size(), 1u) << plan.why_not;
    EXPECT_EQ(plan.launches[0].cluster, cluster);
    EXPECT_EQ(plan.launches[0].grid, u32(args.parts()) * cluster);
    EXPECT_LE(plan.launches[0].shared_bytes, 227 << 10);
    const KernelPlan of_old = op.kernel(bytes, {.arch = 89, .shared_bytes = 99 << 10}, {});
    EXPECT_EQ(of_old.why_not.empty(), cluster == 1) << of_old.why_not;
  }
}

TEST(PartsOfNorms, OfNoSizeThereIsAreRefused) {
  for (const i32 part_rows : {-1, 1025}) try {
      inferred(100, 64, part_rows);
      FAIL() << part_rows;
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find("must be 1 to 1024, or 0 for what suits x"),
                std::string::npos);
    }
}

}  // namespace
}  // namespace heddle
