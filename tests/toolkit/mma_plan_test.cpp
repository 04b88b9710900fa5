#include "heddle/tile/mma_plan.h"

#include <set>

#include <gtest/gtest.h>

namespace heddle::tile {
namespace {

// Where wgmma looks for element (row, k) of a product's operand, relative to the descriptor's address, before words are permuted:
// the canonical layouts of the PTX ISA (and of CuTe), with T = 16 bytes of elements, LBO `lead` and SBO `stride`.
i32 canonical_place(const Descriptor& d, Major major, i32 element_bytes, i32 row, i32 k) {
  const i32 word = 16 / element_bytes, wide = d.span / element_bytes;
  if (major == Major::kK) {
    // ((8, m), (T, 2)) : ((span, SBO), (1, T)); not permuted, the two words are LBO apart.
    const i32 next_word = d.span == 16 ? d.lead : 16;
    return row % 8 * d.span + row / 8 * d.stride + k % word * element_bytes + k / word * next_word;
  }
  // ((T, span / 16, m), (8, k)) : ((1, T, LBO), (span, SBO)); not permuted, LBO and SBO trade places.
  const i32 along = d.span == 16 ? d.stride : d.lead, across = d.span == 16 ? d.lead : d.stride;
  return row % wide * element_bytes + row / wide * along + k % 8 * d.span + k / 8 * across;
}

TEST(MmaPlan, DescriptorsReachTheElementsOfTheTile) {
  for (const i32 bytes : {1, 2, 4})
    for (const Major major : {Major::kK, Major::kOuter})
      for (const i32 span : {128, 64, 32, 16})
        for (const i32 rows : {64, 256}) {
          if (major == Major::kOuter && bytes != 2) continue;
          const OperandTile tile{rows, 128, bytes, major, span};
          ASSERT_TRUE(tile.exists());
          const Descriptor d = descriptor(tile);
          const Swizzle swizzle = swizzle_of_span(span);
          for (i32 step = 0; step < tile.depth / depth_of(bytes); ++step)
            for (i32 row = 0; row < rows; ++row)
              for (i32 k = 0; k < depth_of(bytes); ++k) {
                // The permutation is of whole addresses, and tiles begin at a multiple of 1,024 bytes.
                const i32 place = swizzle(step_bytes(tile, step) + canonical_place(d, major, bytes, row, k));
                ASSERT_EQ(place, tile.place(row, step * depth_of(bytes) + k) * bytes)
                    << bytes << " bytes, span " << span << ", row " << row << ", k " << k << ", step "
                    << step;
              }
        }
}

TEST(MmaPlan, RowsOfATileBeginWhereGroupsLook) {
  for (const Major major : {Major::kK, Major::kOuter}) {
    const OperandTile tile{256, 64, 2, major, 128};
    for (i32 row = 0; row < 256; row += 64) EXPECT_EQ(row_bytes(tile, row), tile.layout()(row) * 2) << row;
  }
}

TEST(MmaPlan, TilesAreFilledOnce) {
  for (const i32 span : {128, 64, 32, 16})
    for (const Major major : {Major::kK, Major::kOuter}) {
      const OperandTile tile{64, 64, 2, major, span};
      std::set<i32> places;
      for (i32 at = 0; at < 64 * 64; ++at) places.insert(tile.place(at % 64, at / 64));
      EXPECT_EQ(places.size(), 64u * 64);
      EXPECT_EQ(*places.rbegin(), 64 * 64 - 1);
    }
}

// The bits of the GEMM prototype that was measured at cuBLAS's rate: rows of 128 bytes, 8 rows to 1,024 bytes.
TEST(MmaPlan, DescriptorBitsAreThoseOfThePtxIsa) {
  const Descriptor k_major = descriptor({128, 64, 2, Major::kK, 128});
  EXPECT_EQ(k_major.bits(), 1ull << 62 | 64ull << 32 | 1ull << 16);
  const Descriptor m_major = descriptor({128, 64, 2, Major::kOuter, 128});
  EXPECT_EQ(m_major.bits(), 1ull << 62 | 64ull << 32 | u64(64 * 128 / 16) << 16);
  EXPECT_EQ(step_bytes({128, 64, 2, Major::kK, 128}, 1), 32);
  EXPECT_EQ(step_bytes({128, 64, 2, Major::kOuter, 128}, 1), 2048);
}

TEST(OperandTile, SeesTheSameMemoryBothWays) {
  for (const i32 span : {16, 32, 64, 128}) {
    const OperandTile rows{64, 128, 2, Major::kK, span}, turned = rows.turned();
    ASSERT_TRUE(turned.exists());
    for (i32 row = 0; row < 64; ++row)
      for (i32 k = 0; k < 128; ++k) {
        EXPECT_EQ(turned.place(k, row), rows.place(row, k));
        const u32 in_row = u32(k) % u32(rows.span_elements()), word = in_row / 8;
        const i32 block = k / rows.span_elements() * rows.block_bytes() / 2;
        EXPECT_EQ(rows.place(row, k),
                  block + row * rows.span_elements() + i32(rows.permuted(word, u32(row))) * 8 + k % 8);
      }
  }
}

TEST(MmaPlan, KnowsWhichAtomsExist) {
  EXPECT_TRUE(mma_atom(2).exists());
  EXPECT_TRUE(wgmma_atom(256, 2).exists());
  EXPECT_TRUE(wgmma_atom(176, 2, From::kRegisters, Major::kK, Major::kOuter).exists());
  EXPECT_FALSE(wgmma_atom(260, 2).exists());
  EXPECT_FALSE(wgmma_atom(12, 2).exists());
  EXPECT_FALSE(wgmma_atom(64, 1, From::kChip, Major::kOuter).exists()) << "8-bit operands lie along k";
  EXPECT_FALSE(wgmma_atom(64, 2, From::kRegisters, Major::kOuter).exists()) << "registers have no major";
  EXPECT_ANY_THROW(wgmma_atom(64, 2).right_fragment());
}

TEST(MmaPlan, CountsRegistersAndBytes) {
  constexpr MmaPlan kTwoGroups{wgmma_atom(256, 2), 128, 256, 64, 2, 1};
  static_assert(kTwoGroups.exists() && kTwoGroups.threads() == 256 && kTwoGroups.steps() == 4);
  static_assert(kTwoGroups.sum_registers() == 128 && kTwoGroups.left_registers() == 0);
  static_assert(kTwoGroups.stage_bytes() == (128 + 256) * 64 * 2);
  static_assert(kTwoGroups.sums().covers() && kTwoGroups.sums().threads() == 256 &&
                kTwoGroups.sums().each() == 128);
  // The second group has rows 64 ... 127.
  static_assert(kTwoGroups.sums().element(128, 0).row == 64);
  constexpr MmaPlan kWarps{mma_atom(2), 128, 128, 32, 2, 4, 64};
  static_assert(kWarps.exists() && kWarps.threads() == 256 && kWarps.sum_registers() == 64);
  static_assert(kWarps.sums().covers() && kWarps.left_registers() == 4 * 4 * 2);
  EXPECT_FALSE((MmaPlan{wgmma_atom(256, 2), 96, 256, 64, 2, 1}.exists()))
      << "96 rows are no two groups of 64";
  EXPECT_FALSE((MmaPlan{wgmma_atom(256, 2), 128, 256, 32, 2, 1, 128}.exists())) << "32 k are no span";
}

}  // namespace
}  // namespace heddle::tile
