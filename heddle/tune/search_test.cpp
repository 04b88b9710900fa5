#include "heddle/tune/search.h"

#include <deque>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/tune/made_up.h"

namespace heddle::tune {
namespace {

struct Planted {
  std::vector<OpConfig> configs;
  std::vector<double> ns;         // by config; below 0: it does not compile; 0: it does not run
  int compiled = 0, samples = 0;  // counts
  size_t most_at_once = 0;        // compilations that ran at once

  void add(double time) { configs.push_back(numbered(i64(configs.size()))), ns.push_back(time); }

  // Does what the machine says. Compilations end in rotation.
  void drive(Search& search, u64 seed = 1) {
    MadeUpClock clock(seed);
    std::deque<size_t> compiling;
    for (;;) {
      const Step step = search.next();
      const size_t c = step.sample.candidate;
      const auto true_ns = [&](size_t at) { return ns[size_t(search.candidate(at).at("tile"))]; };
      if (step.kind == Step::Kind::kDone) return;
      if (step.kind == Step::Kind::kCompile) {
        compiling.push_back(c);
        most_at_once = std::max(most_at_once, compiling.size());
        ++compiled;
      } else if (step.kind == Step::Kind::kWait) {
        ASSERT_FALSE(compiling.empty()) << "it waits for nothing";
        const size_t ended = compiling.back();
        compiling.pop_back();
        true_ns(ended) < 0 ? search.failed_to_compile(ended, "too many registers") : search.compiled(ended);
      } else {
        ++samples;
        true_ns(c) == 0 ? search.failed_to_run("launch refused") : search.timed(clock.sample(true_ns(c)));
      }
    }
  }
};

TEST(Search, PickAnyTakesTheFirstThatWorks) {
  for (int workers : {1, 3}) {
    Planted planted;
    for (double ns : {-1.0, 0.0, 900.0, 100.0, 100.0, 100.0}) planted.add(ns);
    Search search(planted.configs, {.policy = Policy::kPickAny, .num_workers = workers});
    planted.drive(search);
    EXPECT_EQ(search.winner(), planted.configs[2]);
    EXPECT_EQ(planted.samples, 2) << "each that compiles is run once";
    EXPECT_LE(planted.compiled, 3 + workers - 1);
    EXPECT_EQ(search.failures().size(), 2u);
    EXPECT_EQ(search.failures().at(planted.configs[0]), "too many registers");
  }
}

TEST(Search, PickBestTakesTheFastestThatWorks) {
  for (u64 seed = 1; seed <= 20; ++seed) {
    Planted planted;
    for (double ns : {1500.0, -1.0, 1000.0, 0.0, 1100.0, 3000.0}) planted.add(ns);
    Search search(planted.configs, {.policy = Policy::kPickBest, .num_workers = 4});
    planted.drive(search, seed);
    EXPECT_EQ(search.winner(), planted.configs[2]) << seed << "\n" << search.text();
    EXPECT_EQ(planted.compiled, 6);
    EXPECT_EQ(planted.most_at_once, 4u);
    EXPECT_NEAR(search.winner_ns(), 1000, 200);
    EXPECT_EQ(search.samples() + 1, planted.samples) << "one sample failed";
  }
}

TEST(Search, MaxConfigsTakesTheFirstOnes) {
  Planted planted;
  for (double ns : {1500.0, 1200.0, 100.0}) planted.add(ns);
  Search search(planted.configs, {.policy = Policy::kPickBest, .max_configs = 2});
  planted.drive(search);
  EXPECT_EQ(search.winner(), planted.configs[1]);
  EXPECT_EQ(planted.compiled, 2);
}

TEST(Search, AFailureThatIsNotAllowedEndsIt) {
  for (Policy policy : {Policy::kPickAny, Policy::kPickBest}) {
    Planted planted;
    for (double ns : {-1.0, 100.0}) planted.add(ns);
    Search search(planted.configs, {.policy = policy, .allow_failure = false});
    planted.drive(search);
    EXPECT_FALSE(search.has_winner());
    try {
      search.winner();
      FAIL() << "it has a winner";
    } catch (const Error& error) {
      EXPECT_STREQ(
          error.what(),
          "[tune] 1 of 2 configurations fail, which allow_failure forbids:\n  tile=0: too many registers");
    }
  }
}

TEST(Search, SaysWhyNoneWorks) {
  for (Policy policy : {Policy::kPickAny, Policy::kPickBest}) {
    Planted planted;
    for (double ns : {-1.0, 0.0}) planted.add(ns);
    Search search(planted.configs, {.policy = policy});
    planted.drive(search);
    EXPECT_THROW(search.winner(), Error);
    for (const char* line :
         {"tile=0         failed: too many registers\n", "tile=1         failed: launch refused\n"})
      EXPECT_NE(search.text().find(line), std::string::npos) << search.text();
  }
}

// The times of a busy machine may rank otherwise than the ratios of rounds, by which the best is chosen.
TEST(Search, ShowsTheFigureByWhichTheBestWasChosen) {
  Planted planted;
  for (double ns : {3e6, 2e6, -1.0, 9e6}) planted.add(ns);
  Search search(planted.configs, {.policy = Policy::kPickBest});
  planted.drive(search);
  const std::vector<Tried> all = search.tried();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[1].state, "best");
  EXPECT_DOUBLE_EQ(all[1].ratio, 1);
  EXPECT_DOUBLE_EQ(all[1].ns, search.winner_ns());
  EXPECT_NEAR(all[0].ratio, 1.5, 0.1);
  EXPECT_NEAR(all[0].ns / all[1].ns, all[0].ratio, 1e-9);
  EXPECT_LE(all[0].low, all[0].ratio);
  EXPECT_LE(all[0].ratio, all[0].high);
  EXPECT_EQ(all[2].state, "failed");
  EXPECT_EQ(all[2].rounds, 0u);
  const std::string text = search.text();
  EXPECT_TRUE(text.starts_with("configuration         ms  ratio     spread   \ntile=1  ")) << text;
  EXPECT_LT(text.find("tile=1"), text.find("tile=0"));
  EXPECT_LT(text.find("tile=0"), text.find("tile=3"));
  EXPECT_LT(text.find("tile=3"), text.find("tile=2")) << "it has no time";
  EXPECT_NE(text.find("  1.00  "), std::string::npos) << text;
}

TEST(Search, ChangesTheOrderOfASumOnlyWhereThatIsAllowed) {
  Planted planted;
  for (double ns : {1000.0, 100.0}) planted.add(ns);
  planted.configs[1] = planted.configs[1].reordering();
  for (bool allowed : {false, true}) {
    Search search(planted.configs, {.policy = Policy::kPickBest, .allow_reorder = allowed});
    planted.drive(search);
    EXPECT_EQ(search.winner().reorders(), allowed);
  }
  EXPECT_THROW(Search({planted.configs[1]}, {}), Error);
}

TEST(Search, DoesNotTryAgainWhatIsKnownToFail) {
  Planted planted;
  for (double ns : {-1.0, 500.0}) planted.add(ns);
  Search search(planted.configs, {}, {{planted.configs[0], "too many registers"}});
  planted.drive(search);
  EXPECT_EQ(planted.compiled, 1);
  EXPECT_EQ(search.winner(), planted.configs[1]);
}

TEST(Search, RefusesListsThatCannotBe) {
  EXPECT_THROW(Search({}, {}), Error);
  EXPECT_THROW(Search({numbered(1), numbered(1)}, {}), Error);
  EXPECT_THROW(Search({numbered(1)}, {.num_workers = 0}), Error);
}

}  // namespace
}  // namespace heddle::tune
