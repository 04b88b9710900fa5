#include "heddle/tile/tprod_plan.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "heddle/tile/mma_plan.h"

namespace heddle::tile {
namespace {

const std::vector<TprodPlan>& plans() {
  static const std::vector<TprodPlan> all = {{64, 8, 2}, {32, 16, 2}, {8, 1, 2},
                                             {16, 4, 4}, {6, 2, 4},   {8, 8, 4}};
  return all;
}

// phi(x), each block scaled by the root of its multiplicity.
std::vector<double> expand(const TprodPlan& plan, const std::vector<double>& x) {
  std::vector<double> phi;
  for (i32 b = 0; b < plan.blocks(); ++b) {
    const IndexSet set = plan.set(b);
    for (i32 col = 0; col < plan.block_size(); ++col) {
      double value = std::sqrt(double(plan.multiplicity(set)));
      for (i32 f = 0; f < plan.power; ++f) value *= x[size_t(set.tile[f] * plan.tile + plan.factor(f)(col))];
      phi.push_back(value);
    }
  }
  return phi;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

TEST(TprodPlan, InnerProductsArePowers) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  for (const TprodPlan& plan : plans()) {
    ASSERT_TRUE(plan.exists());
    std::vector<double> x(size_t(plan.size)), y(x);
    for (double& v : x) v = normal(random);
    for (double& v : y) v = normal(random);
    const double wanted = std::pow(dot(x, y), plan.power),
                 scale = std::pow(dot(x, x) * dot(y, y), plan.power / 2.0);
    EXPECT_NEAR(dot(expand(plan, x), expand(plan, y)), wanted, 1e-12 * scale)
        << plan.size << " " << plan.tile;
  }
}

TEST(TprodPlan, SetsAreNumbered) {
  for (const TprodPlan& plan : plans()) {
    IndexSet set;
    for (i32 b = 0; b < plan.blocks(); ++b) {
      ASSERT_EQ(plan.set(b), set) << b;
      ASSERT_EQ(plan.number(set), b);
      for (i32 f = 1; f < plan.power; ++f) ASSERT_LE(set.tile[f], set.tile[f - 1]);
      ASSERT_LT(set.tile[0], plan.tiles());
      set = plan.next(set);
    }
    EXPECT_EQ(set.tile[0], plan.tiles()) << "after the last";
  }
  static_assert(TprodPlan{64, 8, 2}.blocks() == 36 && TprodPlan{64, 8, 2}.expanded() == 2304);
  static_assert(TprodPlan{16, 4, 4}.blocks() == 35);
  static_assert(TprodPlan{64, 8, 2}.multiplicity({{3, 3}}) == 1 &&
                TprodPlan{64, 8, 2}.multiplicity({{3, 1}}) == 2);
  static_assert(TprodPlan{64, 8, 4}.multiplicity({{3, 2, 1, 0}}) == 24);
  static_assert(TprodPlan{64, 8, 4}.multiplicity({{3, 3, 1, 1}}) == 6);
  static_assert(TprodPlan{64, 8, 4}.multiplicity({{3, 3, 3, 1}}) == 4);
}

// A lane's elements of the factors give the element of phi that it holds.
TEST(TprodPlan, FactorsOfAFragmentMakeItsElements) {
  for (const TprodPlan& plan : {TprodPlan{64, 8, 2}, TprodPlan{64, 16, 2}, TprodPlan{16, 4, 4}})
    for (const Distribution& who : {wgmma_left(2), mma_left(2)}) {
      const i32 steps = plan.block_size() / who.cols;
      for (i32 f = 0; f < plan.power; ++f) {
        const Distribution factor = plan.factor_of(who, f);
        ASSERT_EQ(factor.each(), who.each());
        ASSERT_EQ(factor.threads(), who.threads());
        for (i32 step = 0; step < steps; ++step)
          for (i32 t = 0; t < who.threads(); ++t)
            for (i32 i = 0; i < who.each(); ++i)
              ASSERT_EQ(plan.first_of(step, who.cols, f) + factor(t, i),
                        plan.factor(f)(step * who.cols + who.element(t, i).col));
      }
    }
  // Tiles of 8: a lane's pair of the second factor is the same in every step, and the first differs by half a fragment.
  constexpr TprodPlan kSquare{64, 8, 2};
  EXPECT_EQ(kSquare.factor_of(wgmma_left(2), 1).fragment.size(), 8);
  EXPECT_EQ(kSquare.factor_of(wgmma_left(2), 1)(3, 1), 7);
  EXPECT_EQ(kSquare.factor_of(wgmma_left(2), 0)(3, 0), 0);
  EXPECT_EQ(kSquare.factor_of(wgmma_left(2), 0)(3, 4), 1);
}

}  // namespace
}  // namespace heddle::tile
