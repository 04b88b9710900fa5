#include "heddle/ir/config.h"

#include <unordered_set>

#include <gtest/gtest.h>

#include "heddle/base/error.h"

namespace heddle {
namespace {

TEST(OpConfig, IsTheSameInAnyOrderOfItsNames) {
  const OpConfig a{{"tile_m", 128}, {"stages", 4}}, b{{"stages", 4}, {"tile_m", 128}};
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.hash(), b.hash());
  EXPECT_EQ(a.text(), "stages=4,tile_m=128");
  EXPECT_EQ(a.at("tile_m"), 128);
  EXPECT_TRUE(a.contains("stages"));
  EXPECT_FALSE(a.contains("stage"));
  EXPECT_THROW(a.at("stage"), Error);
}

TEST(OpConfig, IsOrderedAndHashedByItsValuesAndItsMark) {
  const OpConfig small{{"tile_m", 64}}, large{{"tile_m", 128}};
  EXPECT_LT(small, large);
  EXPECT_LT(OpConfig{}, small);
  EXPECT_NE(small, small.reordering());
  EXPECT_TRUE(small.reordering().reorders());
  EXPECT_EQ(std::unordered_set<OpConfig>({small, large, small.reordering(), small}).size(), 3u);
}

TEST(OpConfig, IsReadAsItIsPrinted) {
  const OpConfig all[] = {{},
                          OpConfig{}.reordering(),
                          {{"split", -2}},
                          {{"stages", 4}, {"tile_m", 128}},
                          OpConfig{{"big", i64{1} << 40}, {"x_2", 0}}.reordering()};
  for (const OpConfig& config : all) EXPECT_EQ(OpConfig::parse(config.text()), config) << config.text();
  EXPECT_EQ(OpConfig::parse("tile_m=128,stages=4"), all[3]);
  EXPECT_EQ(all[1].text(), "default,reorders");
}

TEST(OpConfig, RefusesWhatIsNone) {
  for (const char* text :
       {"", "tile_m", "tile_m=", "=4", "tile_m=4x", "tile_m=4,", ",tile_m=4", "tile_m=4,tile_m=5", "Tile=4",
        "tile m=4", "2x=4", "reorders=1", "default=1", "a=9223372036854775808"})
    EXPECT_THROW(OpConfig::parse(text), Error) << text;
  EXPECT_THROW((OpConfig{{"a", 1}, {"a", 1}}), Error);
}

}  // namespace
}  // namespace heddle
