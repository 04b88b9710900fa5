#include "heddle/tune/store.h"

#include <atomic>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heddle/base/error.h"
#include "heddle/base/file.h"
#include "heddle/tune/choose.h"
#include "heddle/tune/made_up.h"

namespace heddle::tune {
namespace {

namespace fs = std::filesystem;

class StoreFolder : public testing::Test {
 protected:
  StoreFolder() {
    std::string name = fs::temp_directory_path() / "heddle-tune-XXXXXX";
    folder = ::mkdtemp(name.data());
  }
  ~StoreFolder() override { fs::remove_all(folder); }

  Place place(const std::string& device = "NVIDIA H100 80GB") const { return {device, folder + "/mine"}; }
  static Key key(int number = 0) {
    return Key("linear").fact("dtype", "bf16").size("n", number, SizeClasses::exact());
  }
  static Record best(i64 tile) { return {numbered(tile), Policy::kPickBest, 4, 123.5, {}}; }
  std::string message(const Place& where) const {
    try {
      Store store(where);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo);
      return error.what();
    }
  }

  std::string folder;
};

TEST(Key, HasClassesOfSizes) {
  const SizeClasses powers = SizeClasses::powers(), ranges = SizeClasses::ranges({0, 1, 8, 64});
  EXPECT_EQ(SizeClasses::exact().of(4096), "4096");
  const std::pair<i64, const char*> of_powers[] = {
      {0, "0"}, {1, "1"}, {2, "2"}, {3, "3..4"}, {1024, "513..1024"}, {1025, "1025..2048"}};
  for (const auto& [size, name] : of_powers) EXPECT_EQ(powers.of(size), name);
  const std::pair<i64, const char*> of_ranges[] = {{0, "0"},    {1, "1"},     {2, "2..8"},
                                                   {8, "2..8"}, {9, "9..64"}, {65, "65.."}};
  for (const auto& [size, name] : of_ranges) EXPECT_EQ(ranges.of(size), name);
  EXPECT_EQ(SizeClasses::ranges({8}).of(3), "0..8");
  EXPECT_THROW(SizeClasses::ranges({8, 8}), Error);
  EXPECT_THROW(powers.of(-1), Error);
  EXPECT_EQ(Key("linear").fact("dtype", "bf16").size("rows", 600, powers).text(),
            "linear dtype=bf16 rows=513..1024");
  EXPECT_THROW(Key("linear").fact("dtype", "bf 16"), Error);
  EXPECT_THROW(Key(""), Error);
}

TEST_F(StoreFolder, KeepsWhatItIsGiven) {
  const Record record{
      OpConfig{{"split", 2}}.reordering(), Policy::kPickBest, 7, 1234.5, {{numbered(3), "spills \"much\""}}};
  Store(place()).put(key(), record);
  const Store again(place());
  EXPECT_EQ(again.find(key()), record);
  EXPECT_FALSE(again.find(key(1)));
  EXPECT_FALSE(Store(place("NVIDIA H200")).find(key()));
  Place newer = place();
  newer.build = "9.9.9";
  EXPECT_FALSE(Store(newer).find(key())) << "another build";
  Store nowhere({"cpu"});
  nowhere.put(key(), record);
  EXPECT_EQ(nowhere.find(key()), record);
}

TEST_F(StoreFolder, PrefersWhatWasFoundHereToWhatIsShipped) {
  Place shipped = place(), both = place();
  shipped.folder = folder + "/shipped";
  both.shipped = {shipped.folder};
  Store package(shipped);
  package.put(key(1), best(1)), package.put(key(2), best(2));
  const std::string before = read_file(package.path_in(shipped.folder));
  Store store(both);
  EXPECT_EQ(store.find(key(1)), best(1));
  store.put(key(1), best(11));
  EXPECT_EQ(store.find(key(1)), best(11));
  EXPECT_EQ(Store(both).find(key(1)), best(11));
  EXPECT_EQ(Store(both).find(key(2)), best(2));
  EXPECT_EQ(store.size(), 2u);
  const Record failed{.config = {}, .failures = {{numbered(9), "spills"}}};
  store.put(key(2), failed);  // a search that did not end
  EXPECT_EQ(store.find(key(2))->config, best(2).config);
  EXPECT_EQ(store.find(key(2))->failures, failed.failures);
  EXPECT_EQ(read_file(package.path_in(shipped.folder)), before) << "it is only read";
}

TEST_F(StoreFolder, KeepsTheRecordThatAnswersMore) {
  Store store(place());
  const Record any{numbered(5), Policy::kPickAny, 4, 0, {{numbered(9), "spills"}}};
  store.put(key(), best(1));
  store.put(key(), any);
  EXPECT_EQ(store.find(key())->config, numbered(1));
  EXPECT_EQ(store.find(key())->failures, any.failures) << "failures of both";
  store.put(key(), {std::nullopt, Policy::kPickBest, 8, 0, {}});
  EXPECT_EQ(store.find(key())->config, numbered(1)) << "a search that did not end changes nothing";
  store.put(key(), best(2));
  EXPECT_EQ(store.find(key())->config, numbered(2)) << "the new one of equals";
}

TEST_F(StoreFolder, RefusesFilesThatAreDamagedOrForeign) {
  const Place mine = place();
  Store store(mine);
  store.put(key(), best(1));
  const std::string path = store.path_in(mine.folder), good = read_file(path);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  const std::pair<std::string, const char*> bad[] = {
      {good.substr(0, good.size() / 2), "not valid JSON"},
      {"", "not valid JSON"},
      {"[]", "has no 'format'"},
      {"{\"a\": 1}", "format"},
      {changed("configurations 1", "configurations 2"),
       "its format is \"heddle tuned configurations 2\"; must be"},
      {changed("NVIDIA H100 80GB", "NVIDIA A100"), "it is for device \"NVIDIA A100\" and build "},
      {changed("tile=1", "tile"), "'tile' in 'tile' is no value"},
      {changed("PickBest", "PickWorst"), "policy 'PickWorst'"},
      {changed("\"configs\": 4", "\"configs\": \"x\""), "configs is \"x\""},
  };
  for (const auto& [text, words] : bad) {
    write_file(path, text);
    const std::string said = message(mine);
    EXPECT_NE(said.find(words), std::string::npos) << said;
    EXPECT_NE(said.find(path), std::string::npos) << said;
    EXPECT_NE(said.find("remove it"), std::string::npos) << said;
    EXPECT_THROW(store.put(key(2), best(2)), Error) << "nothing is written over it";
    EXPECT_EQ(read_file(path), text);
  }
}

// Each process adds its own records, and in the end the file has all of them.
TEST_F(StoreFolder, IsWrittenByTwoProcessesAtOnce) {
  constexpr int kEach = 40;
  std::vector<pid_t> children;
  for (int child = 0; child < 2; ++child) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      try {
        Store store(place());
        for (int i = 0; i < kEach; ++i) store.put(key(1000 * child + i), best(i));
        ::_exit(0);
      } catch (...) {
        ::_exit(1);
      }
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = -1;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const Store store(place());
  EXPECT_EQ(store.size(), size_t(2 * kEach));
  for (int child : {0, 1})
    for (int i = 0; i < kEach; ++i) EXPECT_EQ(store.find(key(1000 * child + i)), best(i));
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    EXPECT_EQ(entry.path().string().find(".part"), std::string::npos) << entry.path();
}

class Choosing : public StoreFolder {
 protected:
  // Times are planted. Tile 0 does not compile and tile 3 does not run.
  Work work() {
    return {[this](const OpConfig& config) {
              ++compilations;
              if (config.at("tile") == 0) fail(ErrorCode::kCompile, "too many registers");
            },
            [this](const OpConfig& config, int, int) {
              if (interrupted) throw std::runtime_error("interrupted");
              if (config.at("tile") == 3) fail(ErrorCode::kDevice, "launch refused");
              return clock.sample(1000 + 100 * double(std::abs(config.at("tile") - 2)));
            }};
  }
  Choice pick(Policy policy, int max_configs = 0) {
    Store store(place());
    return choose(store, key(), configs, {.policy = policy, .max_configs = max_configs, .num_workers = 2},
                  work());
  }

  std::vector<OpConfig> configs = {numbered(0), numbered(1), numbered(2), numbered(3), numbered(4)};
  MadeUpClock clock{1};
  std::atomic<int> compilations = 0;
  bool interrupted = false;
};

TEST_F(Choosing, SearchesOnceAndThenKnows) {
  const Choice first = pick(Policy::kPickBest), second = pick(Policy::kPickBest);
  EXPECT_EQ(first.config, numbered(2));
  EXPECT_EQ(first.compilations, 5);
  EXPECT_GT(first.samples, 0);
  EXPECT_FALSE(first.from_store);
  EXPECT_TRUE(second.from_store);
  EXPECT_EQ(second.config, first.config);
  EXPECT_EQ(second.ns, first.ns);
  EXPECT_EQ(compilations, 5) << "the second compiles nothing";
  EXPECT_TRUE(pick(Policy::kPickAny).from_store) << "the best is as good as any";
}

TEST_F(Choosing, SearchesAgainWhereMoreIsAsked) {
  EXPECT_EQ(pick(Policy::kPickAny).config, numbered(1));
  EXPECT_EQ(pick(Policy::kPickBest, 2).config, numbered(1));
  const Choice all = pick(Policy::kPickBest);
  EXPECT_FALSE(all.from_store);
  EXPECT_EQ(all.config, numbered(2));
  configs.erase(configs.begin() + 2);
  EXPECT_FALSE(pick(Policy::kPickBest).from_store) << "the chosen one is no candidate any more";
}

TEST_F(Choosing, GoesOnAfterASearchThatWasInterrupted) {
  interrupted = true;
  EXPECT_THROW(pick(Policy::kPickBest), std::runtime_error);
  EXPECT_EQ(compilations, 5);
  interrupted = false;
  EXPECT_EQ(pick(Policy::kPickBest).config, numbered(2));
  EXPECT_EQ(compilations, 9) << "what failed to compile is known";
}

TEST_F(Choosing, DoesNotMixChoicesThatMayReorder) {
  configs[2] = configs[2].reordering();
  Store store(place());
  Settings settings{.policy = Policy::kPickBest, .allow_reorder = true};
  EXPECT_TRUE(choose(store, key(), configs, settings, work()).config.reorders());
  settings.allow_reorder = false;
  EXPECT_FALSE(choose(store, key(), configs, settings, work()).config.reorders());
}

TEST_F(Choosing, SaysWhyNoneWorks) {
  configs = {numbered(0), numbered(3)};
  EXPECT_THROW(pick(Policy::kPickBest), Error);
  EXPECT_THROW(pick(Policy::kPickAny), Error);
  EXPECT_EQ(compilations, 2) << "failures are known the second time";
}

}  // namespace
}  // namespace heddle::tune
