// Tests how the gradient of a norm cuts its sums into parts.
#include <exception>
#include <string>

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
    EXPECT_EQ(args.dbias_parts.size[0], args.dweight_parts.size[0]);
    return std::pair(args.rows_in_part(), args.dweight_parts.size[0]);
  };
  EXPECT_EQ(parts(100, 4096, 0), std::pair(16, 7));
  EXPECT_EQ(parts(32768, 4096, 0), std::pair(125, 263));
  EXPECT_EQ(parts(131072, 1024, 0), std::pair(71, 1847));
  EXPECT_EQ(parts(1 << 20, 8192, 0), std::pair(1024, 1024));
  EXPECT_EQ(parts(100, 4096, 3), std::pair(3, 34));
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
