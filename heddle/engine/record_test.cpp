#include "heddle/engine/record.h"

#include <gtest/gtest.h>

#include "heddle/base/error.h"

namespace heddle {
namespace {

constexpr StepShape kShape{.pages_per_sequence = 8, .page_size = 4, .vocab = 10};

// The error for a step at position 20 with these pages: attention sees 6 positions, from a multiple of 4 on.
std::string message(const std::vector<i32>& pages, const AttentionCut& reach) {
  const i32 token = 1;
  const std::vector<u32> seen(1);
  const RecordEntry entry{.start = 20, .tokens = {&token, 1}, .pages = pages, .seen = seen, .wanted = 1};
  StepRecord record(kShape);
  try {
    record.write(std::span(&entry, 1), 9, reach);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Record, PagesBeforeTheWindowMayBeMissing) {
  const AttentionCut reach{.split_unit = 4, .window = 6};  // reads from 12 on, for rows 15 to 20
  EXPECT_EQ(message({-1, -1, -1, 3, 4, 5}, reach), "");
  EXPECT_EQ(message({0, 1, 2, 3, 4, 5}, reach), "");
  EXPECT_EQ(message({-1, -1, -1, -1, 4, 5}, reach), "[step] page 3 of sequence 0 is -1; must be 0 to 8");
  EXPECT_EQ(message({-1, -1, 9, 3, 4, 5}, reach), "[step] page 2 of sequence 0 is 9; must be 0 to 8");
  EXPECT_EQ(message({-1, 1, 2, 3, 4, 5}, {}), "[step] page 0 of sequence 0 is -1; must be 0 to 8");
}

}  // namespace
}  // namespace heddle
