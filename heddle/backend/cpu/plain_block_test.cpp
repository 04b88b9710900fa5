// The block for bodies that are compiled by themselves: it has the language, and its accesses are heard.
#include "heddle/backend/cpu/plain_block.h"

#include <vector>

#include <gtest/gtest.h>

#include "heddle/tile/block_concept.h"

namespace heddle {
namespace {

using Block = PlainBlock<true>;
static_assert(TileBlock<Block> && MapBlock<Block> && TileBlock<PlainBlock<false>>);
static_assert(language::HasElements<Block::View> && language::HasIndices<Block::View, Block::Index>);

struct Heard {
  std::vector<std::pair<const void*, bool>> accesses;
  AccessHook hook() {
    return {this, [](void* self, const void* address, i64, bool writes) {
              static_cast<Heard*>(self)->accesses.emplace_back(address, writes);
            }};
  }
};

Tensor row_of(std::vector<float>& values) {
  Tensor tensor{.data = reinterpret_cast<u8*>(values.data()), .dtype = DType::kF32, .rank = 1};
  tensor.size[0] = i32(values.size()), tensor.stride[0] = 1;
  return tensor;
}

TEST(PlainBlock, ReducesInSixteenParts) {
  for (i32 n : {1, 15, 16, 17, 100}) {
    std::vector<float> values(static_cast<size_t>(n));
    for (i32 i = 0; i < n; ++i) values[size_t(i)] = float(i % 7);
    PlainBlock<false> block;
    const auto row = block.row(row_of(values));
    float sum = 0, most = 0;
    for (float value : values) sum += value, most = std::max(most, value);
    EXPECT_EQ(block.reduce(n, Sum(), [&](auto i) { return row.load(i); }), sum) << n;
    EXPECT_EQ(block.reduce(n, Max(), [&](auto i) { return row.load(i); }), most) << n;
    EXPECT_EQ(block.argmax(row, n).value, most);
  }
}

TEST(PlainBlock, TellsOfEachAccessToMemory) {
  std::vector<float> values = {1, 2, 3};
  Heard heard;
  const AccessHook hook = heard.hook();
  Block block;
  block.begin(&hook);
  const auto row = block.row(row_of(values));
  const auto scratch = block.scratch(3);
  block.map(3, [&](auto i) { scratch.store(i, 2.0f); });
  EXPECT_TRUE(heard.accesses.empty());
  row.set(2, row.get(0));
  ASSERT_EQ(heard.accesses.size(), 2u);
  EXPECT_EQ(heard.accesses[0], std::pair(static_cast<const void*>(&values[0]), false));
  EXPECT_EQ(heard.accesses[1], std::pair(static_cast<const void*>(&values[2]), true));
}

TEST(PlainBlock, MultipliesWhatAProductHolds) {
  std::vector<float> a = {1, 2, 3, 4, 5, 6};  // [2, 3]
  Block block;
  const auto product = block.product(1, 2, 3, DType::kBf16);
  for (i32 i = 0; i < 3; ++i) product.left_row(0).set(i, float(i + 1));
  block.set_right_rows(product, 0, 0, Lines(block.row(row_of(a)), 3, 2, 3));
  auto fragment = block.fragment(0, 1, 0, 2);
  block.mma(fragment, product);
  EXPECT_EQ(fragment.row(0).get(0), 14);
  EXPECT_EQ(fragment.row(0).get(1), 32);
}

}  // namespace
}  // namespace heddle
