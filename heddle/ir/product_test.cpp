#include "heddle/ir/product.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

Weight paired(DType type) {
  Weight w;
  w.data = {.dtype = type, .rank = 2, .size = {64, 128}, .stride = {128, 1}};
  w.panel_rows = 2, w.interleave = 16 / size_of(type);
  return w;
}

TEST(ProductPath, OfAWeightFollowsRowsAndKernel) {
  const Weight w = paired(DType::kBf16);
  const ProductRows few{DType::kBf16, 8, 128, 256, true}, many{DType::kBf16, 9, 128, 256, true};
  const ProductKernel decode{.ring_rows = 8}, prefill{.ring_rows = 8, .has_slabs = true},
      call{.has_slabs = true};
  EXPECT_EQ(product_path(w, few, decode), ProductPath::kRing);
  EXPECT_EQ(product_path(w, few, prefill), ProductPath::kRing);
  EXPECT_EQ(product_path(w, many, prefill), ProductPath::kSlabs);
  EXPECT_EQ(product_path(w, few, call), ProductPath::kSlabs);
  EXPECT_EQ(product_path(w, many, decode), ProductPath::kElements);
}

TEST(ProductPath, OfAWeightTakesElementsWhereWordsDoNotFit) {
  const ProductKernel call{.has_slabs = true};
  const ProductRows rows{DType::kBf16, 9, 128, 256, true};
  Weight w = paired(DType::kBf16);
  for (const ProductRows& other : {ProductRows{DType::kF32, 9, 128, 512, true},
                                   {DType::kBf16, 9, 100, 256, true},
                                   {DType::kBf16, 9, 128, 258, true},
                                   {DType::kBf16, 9, 128, 256, false},
                                   {DType::kF16, 9, 128, 256, true}})
    EXPECT_EQ(product_path(w, other, call), ProductPath::kElements);
  EXPECT_EQ(product_path(w, rows, call), ProductPath::kSlabs);
  w.panel_rows = 16;
  EXPECT_EQ(product_path(w, rows, call), ProductPath::kElements);
  EXPECT_EQ(product_path(paired(DType::kF32), {DType::kF32, 9, 128, 512, true}, call),
            ProductPath::kElements);
}

TEST(ProductPath, OfMatricesFollowsTheirTypes) {
  const auto of = [](DType a, DType b) {
    Matrix left, right;
    left.data.dtype = a, right.data.dtype = b;
    EXPECT_EQ(product_path(left, right) == ProductPath::kMultiplyAdds,
              product_dtype(left, right) == DType::kF32);
    EXPECT_EQ(product_dtype(left, right), product_dtype(right, left));
    return product_dtype(left, right);
  };
  EXPECT_EQ(of(DType::kBf16, DType::kBf16), DType::kBf16);
  EXPECT_EQ(of(DType::kF16, DType::kI4), DType::kF16);
  EXPECT_EQ(of(DType::kBf16, DType::kI8), DType::kBf16);
  EXPECT_EQ(of(DType::kF8E4M3, DType::kF8E5M2), DType::kBf16);
  EXPECT_EQ(of(DType::kF16, DType::kBf16), DType::kF32);
  EXPECT_EQ(of(DType::kF32, DType::kI8), DType::kF32);
}

}  // namespace
}  // namespace heddle
