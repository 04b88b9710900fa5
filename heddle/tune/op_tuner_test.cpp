#include "heddle/tune/op_tuner.h"

#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "heddle/ir/infer.h"
#include "heddle/ir/rules.h"

namespace heddle::tune {
namespace {

struct Doubled {
  Tensor x, y;
  i32 times = 2;
  template <class Self, class V>
  static void visit(Self& s, V&& v) {
    v.read("x", s.x, "M, N"), v.attribute("times", s.times), v.write("y", s.y, "M, N");
  }
};

const OpSpec& doubled_op() {
  static const OpSpec spec = [] {
    OpSpec op = op_of<Doubled>("doubled", "y = 2 x");
    op.infer = [](std::byte* args) {
      auto& a = as<Doubled>(args);
      set_output("doubled", "y", a.y, a.x.dtype, {a.x.size[0], a.x.size[1]});
    };
    op.configs = [](const std::byte* args, const TilingTarget&) -> std::vector<OpConfig> {
      if (as<Doubled>(args).x.size[1] == 1) return {};
      return {{{"tile", 1}}, {{"tile", 2}}, {{"tile", 3}}, OpConfig{{"tile", 4}}.reordering()};
    };
    return op;
  }();
  return spec;
}

// Tile 2 is the fastest that keeps the order of sums, tile 4 of all.
class Caller : public OpCaller {
 public:
  CallNeeds needs(const OpSpec&, const std::byte*, const CallSite& site) override {
    ++compilations;
    if (site.config->at("tile") == fails) fail(ErrorCode::kCompile, "too many registers");
    return {};
  }
  void run(const OpSpec&, const std::byte* args, const CallSite& site) override {
    ++runs;
    const auto& a = as<Doubled>(args);
    for (i32 i = 0; i < a.x.size[0] * a.x.size[1]; ++i)
      reinterpret_cast<float*>(a.y.data)[i] = 2 * reinterpret_cast<const float*>(a.x.data)[i];
    const i64 tile = site.config->at("tile");
    std::this_thread::sleep_for(std::chrono::microseconds(tile == 4 ? 20 : 1000 * (1 + std::abs(tile - 2))));
  }
  MemoryPlace::Kind memory() const override { return MemoryPlace::Kind::kHost; }

  std::atomic<int> compilations = 0, runs = 0;
  i64 fails = 0;
};

Caller& caller() {
  static Caller made;
  return made;
}

const Backend& backend() {
  static const Backend all = [] {
    Backend made{.name = "made up", .executors = {}};
    made.device = [](i32) { return std::string("a device"); };
    made.op_calls = []() -> OpCaller& { return caller(); };
    return made;
  }();
  return all;
}

class Tuning : public testing::Test {
 protected:
  Tuning() { caller().compilations = caller().runs = 0, caller().fails = 0; }
  ~Tuning() override { std::filesystem::remove_all(folder); }

  const std::byte* args(i32 rows, i32 columns = 8) {
    values.assign(size_t(rows) * size_t(columns), 1.5f);
    const i64 size[] = {rows, columns};
    a.x = tensor_of("doubled", "x", {.data = values.data(), .dtype = DType::kF32, .size = size});
    return reinterpret_cast<const std::byte*>(&a);
  }
  std::string choose(OpTuner& tuner, const std::byte* of) {
    const auto tuned = tuner.choose(doubled_op(), of, {});
    return tuned ? tuned->summary() : "none";
  }

  const std::string folder = testing::TempDir() + "op_tuner_test";
  std::vector<float> values;
  Doubled a;
};

TEST_F(Tuning, FindsTheBestOnceForAClassOfRows) {
  OpTuner tuner(backend(), 0, folder);
  EXPECT_EQ(choose(tuner, args(20)), "none") << "PickAny has the default";
  EXPECT_EQ(caller().runs, 0);
  {
    const SettingsScope scope({.policy = Policy::kPickBest});
    EXPECT_EQ(choose(tuner, args(20)), "tuned: config tile=2 of 3");
    EXPECT_EQ(values, std::vector<float>(160, 1.5f));
    const int runs = caller().runs;
    EXPECT_GT(runs, 0);
    EXPECT_EQ(choose(tuner, args(32)), "tuned: config tile=2 of 3");
    EXPECT_EQ(caller().runs, runs) << "17 to 32 rows share a choice";
    EXPECT_EQ(choose(tuner, args(20, 1)), "none") << "there is nothing to choose";
    EXPECT_EQ(choose(tuner, args(0)), "none");
  }
  EXPECT_EQ(thread_settings().policy, Policy::kPickAny);
  EXPECT_EQ(choose(tuner, args(20)), "tuned: config tile=2 of 3") << "PickAny has what was found";
  EXPECT_EQ(choose(tuner, args(33)), "none");
  EXPECT_EQ(choose(tuner, args(20, 9)), "none");
  OpTuner again(backend(), 0, folder);
  EXPECT_EQ(choose(again, args(20)), "tuned: config tile=2 of 3") << "from the file";
}

TEST_F(Tuning, TakesAnotherOrderOfSumsOnlyIfAllowed) {
  OpTuner tuner(backend(), 0, "");
  const SettingsScope scope({.policy = Policy::kPickBest, .allow_reorder = true});
  EXPECT_EQ(choose(tuner, args(20)), "tuned: config tile=4,reorders of 4");
  const auto known = tuner.choose(doubled_op(), args(20), {});
  EXPECT_EQ(tuner.choose(doubled_op(), args(20), {}), known) << "the store is asked once";
  thread_settings().allow_reorder = false;
  EXPECT_EQ(choose(tuner, args(20)), "tuned: config tile=2 of 3");
}

TEST_F(Tuning, LeavesOutWhatFailsOrSaysWhy) {
  OpTuner tuner(backend(), 0, "");
  caller().fails = 2;
  const SettingsScope scope({.policy = Policy::kPickBest, .allow_failure = false});
  EXPECT_THROW(choose(tuner, args(20)), Error);
  thread_settings().allow_failure = true;
  EXPECT_NE(choose(tuner, args(20)), "tuned: config tile=2 of 3");
  thread_settings().max_configs = 1;
  EXPECT_EQ(choose(tuner, args(20)), "none");
}

TEST_F(Tuning, KeysNameWhatDecides) {
  const std::string key = key_of_call(doubled_op(), args(20), {.threads = 3}).text();
  EXPECT_EQ(key, "doubled x=f32 times=2 M=17..32 N=8 threads=3");
}

TEST_F(Tuning, SettingsBelongToTheirThread) {
  const SettingsScope scope({.policy = Policy::kPickBest});
  std::thread([] { EXPECT_EQ(thread_settings().policy, Policy::kPickAny); }).join();
}

}  // namespace
}  // namespace heddle::tune
