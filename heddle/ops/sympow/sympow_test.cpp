// <phi(q), phi(k)> = <q, k>^power in fp64, and the gradient of it.
#include <random>

#include <gtest/gtest.h>

#include "heddle/ops/sympow/power_attention_reference.h"
#include "heddle/ops/sympow/sympow_columns.h"

namespace heddle {
namespace {

std::vector<double> random(i32 count, std::mt19937_64& bits) {
  std::vector<double> values(static_cast<size_t>(count));
  for (double& v : values) v = double(bits() >> 11) * 0x1p-52 - 1;
  return values;
}

TEST(Sympow, KeepsInnerProducts) {
  std::mt19937_64 bits(1);
  for (const auto& [power, dim] : {std::pair{2, 8}, {2, 16}, {2, 64}, {2, 128}, {4, 8}, {4, 16}, {4, 32}})
    for (int round = 0; round < 3; ++round) {
      const auto q = random(dim, bits), k = random(dim, bits);
      const auto phi_q = sympow_of(power, q), phi_k = sympow_of(power, k);
      ASSERT_EQ(i64(phi_q.size()), sympow_width(power, dim));
      const double wanted = std::pow(dot(q, k), power), size = std::pow(dot(q, q) * dot(k, k), power / 2.0);
      EXPECT_NEAR(dot(phi_q, phi_k), wanted, 1e-14 * size) << "power " << power << ", " << dim << " elements";
      // The gradient with respect to q is power <q, k>^(power - 1) k.
      const auto slope = sympow_gradient(power, q, phi_k);
      for (size_t i = 0; i < q.size(); ++i)
        EXPECT_NEAR(slope[i], power * std::pow(dot(q, k), power - 1) * k[i], 1e-13 * size);
    }
}

TEST(Sympow, HasEachBlockOnce) {
  for (const i32 power : {2, 4}) {
    const i32 tiles = 5;
    const i64 inside = power == 2 ? 1 : kSympowGroup, blocks = sympow_sequences(tiles, power);
    i64 sequences = 0;
    for (i64 b = 0; b < blocks; ++b) {
      const SympowGroup group = sympow_group(power, b * inside);
      EXPECT_LT(group.first, tiles * kSympowTile);
      EXPECT_GE(group.slow, group.fast);
      sequences += group.orders;
    }
    EXPECT_EQ(sequences, power == 2 ? 25 : 625) << "orders of all blocks are all tuples of tiles";
  }
}

TEST(Sympow, AddsColumnsForMoreElements) {
  std::mt19937_64 bits(2);
  const auto x = random(24, bits);
  const auto whole = sympow_of(2, x), part = sympow_of(2, std::span(x).first(16));
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin()));
}

}  // namespace
}  // namespace heddle
