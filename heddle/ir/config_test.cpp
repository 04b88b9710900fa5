#include "heddle/ir/config.h"

#include <unordered_set>

#include <gtest/gtest.h>

#include "heddle/base/error.h"

namespace heddle {
namespace {

TEST(Config, IsTheSameInAnyOrderOfItsNames) {
  const Config a{{"tile_m", 128}, {"stages", 4}}, b{{"stages", 4}, {"tile_m", 128}};
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.hash(), b.hash());
  EXPECT_EQ(a.text(), "stages=4,tile_m=128");
  EXPECT_EQ(a.at("tile_m"), 128);
  EXPECT_TRUE(a.contains("stages"));
  EXPECT_FALSE(a.contains("stage"));
  EXPECT_THROW(a.at("stage"), Error);
}

TEST(Config, IsOrderedAndHashedByItsValuesAndItsMark) {
  const Config small{{"tile_m", 64}}, large{{"tile_m", 128}};
  EXPECT_LT(small, large);
  EXPECT_LT(Config{}, small);
  EXPECT_NE(small, small.reordering());
  EXPECT_TRUE(small.reordering().reorders());
  EXPECT_EQ(std::unordered_set<Config>({small, large, small.reordering(), small}).size(), 3u);
}

TEST(Config, IsReadAsItIsPrinted) {
  const Config all[] = {{},
                        Config{}.reordering(),
                        {{"split", -2}},
                        {{"stages", 4}, {"tile_m", 128}},
                        Config{{"big", i64{1} << 40}, {"x_2", 0}}.reordering()};
  for (const Config& config : all) EXPECT_EQ(Config::parse(config.text()), config) << config.text();
  EXPECT_EQ(Config::parse("tile_m=128,stages=4"), all[3]);
  EXPECT_EQ(all[1].text(), "default,reorders");
}

TEST(Config, RefusesWhatIsNone) {
  for (const char* text :
       {"", "tile_m", "tile_m=", "=4", "tile_m=4x", "tile_m=4,", ",tile_m=4", "tile_m=4,tile_m=5", "Tile=4",
        "tile m=4", "2x=4", "reorders=1", "default=1", "a=9223372036854775808"})
    EXPECT_THROW(Config::parse(text), Error) << text;
  EXPECT_THROW((Config{{"a", 1}, {"a", 1}}), Error);
}

}  // namespace
}  // namespace heddle
