#include "heddle/text/stop.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "heddle/base/error.h"

namespace heddle {
namespace {

std::string run(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopStrings stop(stops);
  std::string text;
  for (const std::string& piece : pieces) text += stop.push(piece);
  return stop.stopped() ? text + "|" + stop.stop() : text + stop.flush();
}

TEST(StopStrings, CutsBeforeTheStringThatIsCompleteFirst) {
  EXPECT_EQ(run({"END"}, {"one EN", "D two"}), "one |END");
  EXPECT_EQ(run({"END"}, {"one EN", "E two EN"}), "one ENE two EN");
  EXPECT_EQ(run({"bc", "abcd"}, {"xabcd"}), "xa|bc");
  EXPECT_EQ(run({"bc", "abc"}, {"xab", "c"}), "x|abc");
  EXPECT_EQ(run({"aab"}, {"a", "a", "a", "b"}), "a|aab");
  EXPECT_EQ(run({"\n\n", "é"}, {"\n", "caf\xC3", "\xA9"}), "\ncaf|é");
  EXPECT_EQ(run({}, {"all", " of it"}), "all of it");
}

TEST(StopStrings, HoldsBackOnlyWhatMayBecomeAStop) {
  StopStrings stop({"abc"});
  EXPECT_EQ(stop.push("xab"), "x");
  EXPECT_EQ(stop.push("a"), "ab");
  EXPECT_EQ(stop.push("z"), "az");
  EXPECT_EQ(stop.push("abc more"), "");
  EXPECT_TRUE(stop.stopped());
  EXPECT_EQ(stop.push("more"), "");
  EXPECT_EQ(stop.flush(), "");
}

TEST(StopStrings, RefusesAnEmptyOne) {
  EXPECT_THROW(StopStrings({"a", ""}), Error);
}

// By the definition: the first end of a stop string in the whole text, and the longest one that ends there.
std::string expected(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::string longest;
    for (const std::string& stop : stops) {
      const bool ends = std::string_view(text).substr(0, end).ends_with(stop);
      if (ends && stop.size() > longest.size()) longest = stop;
    }
    if (!longest.empty()) return text.substr(0, end - longest.size()) + "|" + longest;
  }
  return text;
}

TEST(StopStrings, DoesNotDependOnThePieces) {
  std::mt19937 random(1);
  const auto word = [&](size_t most) {
    std::string text;
    for (size_t n = 1 + random() % most; n > 0; --n) text += "ab"[random() % 2];
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    const std::vector<std::string> stops = {word(7), word(9), word(6)};
    std::vector<std::string> pieces;
    std::string text;
    for (int i = 0; i < 6; ++i) text += pieces.emplace_back(word(5));
    EXPECT_EQ(run(stops, pieces), expected(stops, text));
  }
}

}  // namespace
}  // namespace heddle
