#include "heddle/tile/copy_plan.h"

#include <vector>

#include <gtest/gtest.h>

#include "heddle/tile/mma_plan.h"

namespace heddle::tile {
namespace {

constexpr OperandTile kRows128{128, 64, 2, Major::kK, 128};
constexpr CopyPlan kToSwizzled = copy_rows(128, 64, 2, 256, kRows128.layout(), kRows128.swizzle());

// Copies as a kernel would, from memory with gaps between its lines, and checks every element and every border.
void copies_all_and_only(const CopyPlan& plan, i32 rows_there, i32 cols_there, i32 gap) {
  SCOPED_TRACE(testing::Message() << plan.rows << " x " << plan.cols << " by " << plan.threads << ", there "
                                  << rows_there << " x " << cols_there << ", words of " << plan.width());
  const CopyWords words = plan.words();
  const i32 pitch = words.length + gap, border = -1, zero = 0;
  std::vector<i32> memory(size_t(pitch * plan.lines()), border), target(size_t(plan.to.cosize()), border);
  const auto at = [&](i32 row, i32 col) { return words.along_rows ? row * pitch + col : col * pitch + row; };
  for (i32 col = 0; col < cols_there; ++col)
    for (i32 row = 0; row < rows_there; ++row) memory[size_t(at(row, col))] = 1 + row + 1000 * col;
  std::vector<i32> written(target.size());
  for (i32 t = 0; t < plan.threads; ++t)
    for (i32 i = 0; i < words.each(); ++i) {
      if (!words.has(u32(t), u32(i))) {
        ASSERT_FALSE(words.is_even());
        continue;
      }
      const CopyWord word = words.word(u32(t), u32(i));
      const i32 valid = words.valid(word, rows_there, cols_there);
      for (i32 e = 0; e < words.width; ++e) {
        const i32 value = e < valid ? memory[size_t(at(word.row, word.col) + e)] : zero;
        ASSERT_NE(value, border) << "read past the end";
        ASSERT_LT(size_t(word.to + e), target.size());
        target[size_t(word.to + e)] = value, ++written[size_t(word.to + e)];
      }
    }
  for (i32 col = 0; col < plan.cols; ++col)
    for (i32 row = 0; row < plan.rows; ++row) {
      const i32 place = plan.swizzle(plan.to(row + plan.rows * col));
      const bool there = row < rows_there && col < cols_there;
      ASSERT_EQ(target[size_t(place)], there ? 1 + row + 1000 * col : zero) << row << ", " << col;
      ASSERT_EQ(written[size_t(place)], 1);
    }
}

TEST(CopyPlan, CopiesAllAndOnlyTheTile) {
  const std::vector<CopyPlan> plans = {
      kToSwizzled,
      copy_rows(64, 64, 2, 128, by_columns(64, 64)),       // turned: no two elements stay together
      copy_columns(64, 64, 2, 128, by_columns(64, 64)),    // as it is
      copy_rows(32, 24, 4, 64, line(32, 28).with(24, 1)),  // rows with a gap on chip
      copy_rows(16, 20, 2, 96, by_rows(16, 20)),           // words of 4, and not as many as threads
      copy_columns(128, 16, 2, 32, OperandTile{128, 16, 2, Major::kOuter, 128}.layout(),
                   OperandTile{128, 16, 2, Major::kOuter, 128}.swizzle()),
      copy_rows(8, 1, 4, 32, by_columns(8, 1)),
      copy_rows(1, 48, 1, 32, by_rows(1, 48)),
  };
  for (const CopyPlan& plan : plans)
    for (const i32 gap : {0, 8})
      for (const i32 missing : {0, 1, 5}) {
        const i32 rows = std::max(plan.rows - missing, 0), cols = std::max(plan.cols - missing, 0);
        copies_all_and_only(plan, plan.rows, plan.cols, gap);
        copies_all_and_only(plan, rows, plan.cols, gap);
        copies_all_and_only(plan, plan.rows, cols, gap);
        copies_all_and_only(plan, rows, cols, gap);
      }
}

TEST(CopyPlan, WordsAreAsWideAsBothSidesAllow) {
  static_assert(kToSwizzled.width() == 8 && kToSwizzled.words().each() == 4);
  static_assert(copy_rows(64, 64, 2, 128, by_columns(64, 64)).width() == 1);
  static_assert(copy_rows(16, 20, 2, 96, by_rows(16, 20)).width() == 4);  // words do not cross rows
  static_assert(copy_rows(128, 64, 1, 256, by_rows(128, 64)).width() == 16);
  // Memory that is not aligned.
  static_assert(kToSwizzled.aligned(128, 16).width() == 8);
  static_assert(kToSwizzled.aligned(130, 16).width() == 1);
  static_assert(kToSwizzled.aligned(1028, 256).width() == 2);
  static_assert(kToSwizzled.aligned(1024, 8).width() == 4);
}

TEST(CopyPlan, ChoosesTheEngine) {
  const CopyFacts sm90{.pitch_bytes = 4096, .alignment = 256, .has_bulk = true};
  EXPECT_EQ(kToSwizzled.engine(sm90), CopyEngine::kTensor);
  EXPECT_EQ(kToSwizzled.span_bytes(), 128);
  EXPECT_EQ(kToSwizzled.boxes(), 1);
  EXPECT_EQ(kToSwizzled.engine({.pitch_bytes = 4096, .alignment = 256}), CopyEngine::kAsync);
  EXPECT_EQ(kToSwizzled.engine({.pitch_bytes = 4098, .alignment = 256, .has_bulk = true}),
            CopyEngine::kLoadStore);
  EXPECT_EQ(kToSwizzled.engine({.pitch_bytes = 4100, .alignment = 256, .has_bulk = true}),
            CopyEngine::kAsync);
  EXPECT_EQ(kToSwizzled.engine({.pitch_bytes = 4096, .alignment = 256, .has_async = false}),
            CopyEngine::kLoadStore);
  const CopyPlan run = copy_rows(16, 64, 2, 32, by_rows(16, 64));
  EXPECT_EQ(run.engine({.pitch_bytes = 128, .alignment = 16, .has_bulk = true}), CopyEngine::kBulk);
  // Two boxes of 64 columns each.
  const OperandTile wide{64, 128, 2, Major::kK, 128};
  EXPECT_EQ(copy_rows(64, 128, 2, 128, wide.layout(), wide.swizzle()).boxes(), 2);
  // Columns as lines: blocks of 64 rows.
  const OperandTile turned{128, 64, 2, Major::kOuter, 128};
  const CopyPlan columns = copy_columns(128, 64, 2, 128, turned.layout(), turned.swizzle());
  EXPECT_EQ(columns.span_bytes(), 128);
  EXPECT_EQ(columns.boxes(), 2);
  EXPECT_EQ(copy_rows(64, 64, 2, 128, by_columns(64, 64)).boxes(), 0) << "no box turns a tile";
}

}  // namespace
}  // namespace heddle::tile
