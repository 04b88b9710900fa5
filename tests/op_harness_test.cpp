// Runs the cases of every op on every executor and compares with the op's fp64 reference. A new op or executor needs no
// new test.
#include <cmath>

#include <gtest/gtest.h>

#include "heddle/backend/cpu/simd.h"
#include "heddle/ir/call/op_call.h"
#include "heddle/ir/executor/executor.h"
#include "heddle/ir/registry.h"
#include "tests/support/case_runner.h"
#include "tests/support/rounds.h"

namespace heddle {
namespace {

struct Run {
  const OpSpec* op;
  std::string executor;
};

std::vector<Run> all_runs() {
  std::vector<Run> runs;
  for (const OpSpec* op : all_ops())
    for (const Backend* backend : all_backends())
      for (const ExecutorSpec& executor : backend->executors) runs.push_back({op, executor.name});
  return runs;
}

// A quarter of the cases on the executor that runs the references themselves. HEDDLE_TEST_SCALE says how many there are on a
// GPU, where each compiles a kernel, and of bodies that op_call_test runs with all of them.
std::vector<Case> cases_on(const std::string& executor, const std::vector<Case>& cases, bool are_called) {
  if (executor == "reference") return chosen(cases, cases.size() / 4);
  return get_executor(executor).space || are_called ? chosen(cases) : cases;
}

class OpHarness : public testing::TestWithParam<Run> {
 protected:
  void SetUp() override {
    const std::string& executor = GetParam().executor;
    if (std::string why = get_executor(executor).unavailable(); !why.empty())
      GTEST_SKIP() << executor << ": " << why;
  }
};

TEST_P(OpHarness, MatchesReference) {
  const auto& [op, executor] = GetParam();
  const std::vector<Case> cases = cases_on(executor, op->cases(), !needs_step_record(*op));
  ASSERT_FALSE(cases.empty()) << op->name << " has no cases";
  for (size_t i = 0; i < cases.size(); ++i) {
    CaseResult result = run_case(*op, cases[i], executor);
    EXPECT_EQ(result.problem, "") << op->name << " case " << i << " " << cases[i].name << " on " << executor;
  }
}

TEST_P(OpHarness, MatchesReferenceInChains) {
  const auto& [op, executor] = GetParam();
  if (!op->traits.prologue && !op->traits.epilogue) return;
  std::vector<Case> cases = op->cases();
  std::erase_if(cases, [op = op](const Case& test) { return !fits_chain(*op, test); });
  EXPECT_FALSE(cases.empty()) << op->name << " is a part of chains, but no case of it hands on f32";
  cases = cases_on(executor, cases, false);
  for (size_t i = 0; i < cases.size(); ++i) {
    CaseResult result = run_chain(*op, cases[i], executor);
    EXPECT_EQ(result.problem, "") << op->name << " case " << i << " " << cases[i].name << " on " << executor;
  }
}

// Puts NaN and infinities into each input; the results are NaN and infinite where they are in fp64.
void expect_kept(const OpSpec& op, const std::string& executor, size_t most, const std::string& simd = "") {
  for (const Case& test : chosen(op.cases(), most))
    for (const Planted& planted : all_planted(op, test.args.data())) {
      const CaseResult result = run_case(op, test, executor, {.simd = simd, .planted = planted});
      EXPECT_EQ(result.problem, "") << op.name << " " << test.name << " with " << planted.value << " in "
                                    << planted.field << " on " << executor << " " << simd;
    }
}

TEST_P(OpHarness, KeepsNanAndInfinity) {
  const auto& [op, executor] = GetParam();
  if (op->name == "sample" && get_executor(executor).space)
    GTEST_SKIP()
        << "a GPU chooses among finite scores only: the engine ends a run before it draws from others";
  expect_kept(*op, executor, get_executor(executor).space ? 2 : 12);
}

// Levels below the best round differently: most have no fused products.
TEST(SimdLevels, BelowTheBestMatchReference) {
  for (const SimdLevel& level : simd_levels().subspan(1))
    for (const OpSpec* op : all_ops())
      for (const Case& test : chosen(op->cases(), 6))
        EXPECT_EQ(run_case(*op, test, "threads", {.simd = level.name}).problem, "")
            << op->name << " " << test.name << " with " << level.name;
}

TEST(SimdLevels, BelowTheBestKeepNanAndInfinity) {
  for (const SimdLevel& level : simd_levels().subspan(1))
    for (const OpSpec* op : all_ops()) expect_kept(*op, "threads", 3, level.name);
}

INSTANTIATE_TEST_SUITE_P(Ops, OpHarness, testing::ValuesIn(all_runs()), [](const auto& param) {
  return std::string(param.param.op->name) + "_" + param.param.executor;
});

}  // namespace
}  // namespace heddle
