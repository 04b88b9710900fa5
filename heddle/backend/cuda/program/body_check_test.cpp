#include "heddle/backend/cuda/program/body_check.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "heddle/backend/cuda/compiler/nvrtc.h"
#include "heddle/base/error.h"
#include "heddle/ir/op.h"
#include "heddle/ir/row_classes.h"

namespace heddle::cuda {
namespace {

// `make check-device` has all bodies for all architectures.
TEST(BodyCheck, BodiesCompileWithinTheirBudgets) {
  if (!why_no_compiler().empty()) GTEST_SKIP() << why_no_compiler();
  const std::vector<BodyCheck> checks =
      check_bodies(std::vector<std::string>{"sm_90a"}, {.ops = {"attention_merge", "rms_norm", "add"}});
  for (const BodyCheck& check : checks) {
    EXPECT_EQ(check.failure, "") << check.op;
    EXPECT_GT(check.use.registers, 0) << check.op;
  }
}

TEST(BodyCheck, CompilesAllPathsAndThoseOfEachType) {
  if (!why_no_compiler().empty()) GTEST_SKIP() << why_no_compiler();
  const std::vector<BodyCheck> checks =
      check_bodies(std::vector<std::string>{"sm_90a"}, {.ops = {"bmm", "add"}});
  const auto count = [&](const std::string& op, int rows, bool optimised, const std::string& types) {
    return std::ranges::count_if(checks, [&](const BodyCheck& check) {
      return check.op == op && check.rows == rows && check.optimised == optimised &&
             (types.empty() ? check.types.empty() : check.types.find(types) != check.types.npos);
    });
  };
  EXPECT_EQ(count("add", 1, true, ""), 1) << "small whatever its types";
  for (const int rows : {1, kPromptStepRows}) {
    for (const char* type : {"a f32, b f32", "a bf16, b bf16"})
      EXPECT_GE(count("bmm", rows, true, type), 1) << type;
    EXPECT_EQ(count("bmm", rows, false, ""), 1) << "with all types";
  }
}

TEST(BodyCheck, NamesCodeWithoutCompilingIt) {
  if (!why_no_compiler().empty()) GTEST_SKIP() << why_no_compiler();  // options depend on its version
  BodyCheckOptions options{.ops = {"matmul", "add"}, .only_names = true};
  std::set<std::string> names;
  size_t count = 0;
  for (const bool unoptimised : {false, true}) {
    options.unoptimised = unoptimised;
    for (const BodyCheck& check : check_bodies(std::vector<std::string>{"sm_90a"}, options)) {
      EXPECT_TRUE(check.made_for == "matmul" || check.made_for == "add") << check.op;
      EXPECT_EQ(check.use.registers, 0) << check.op;
      EXPECT_EQ(check.code_name.size(), 32u) << check.op;
      if (check.optimised != unoptimised) names.insert(check.code_name), ++count;
    }
  }
  EXPECT_GT(count, 4u);
  EXPECT_EQ(names.size(), count) << "two kernels have one name";
}

TEST(BodyCheck, HoldsNoBudgetAgainstUnoptimisedCode) {
  if (!why_no_compiler().empty()) GTEST_SKIP() << why_no_compiler();
  const std::vector<BodyCheck> checks =
      check_bodies(std::vector<std::string>{"sm_80"}, {.ops = {"rms_norm"}, .unoptimised = true});
  for (const BodyCheck& check : checks) {
    EXPECT_EQ(check.failure, "") << check.op;
    EXPECT_GT(check.use.stack_bytes, 320) << check.op << ": more than the budget of optimised code";
  }
}

TEST(BodyCheck, SaysWhatIsOverABudget) {
  const Budget budget = {.registers = 100, .shared_bytes = 1000, .stack_bytes = 8, .spill_bytes = 16};
  KernelUse use = {"k", 100, 1000, 8, 8, 8};
  EXPECT_EQ(over_budget(use, budget), "");
  use.registers = 101;
  use.spill_load_bytes = 9;
  EXPECT_EQ(over_budget(use, budget),
            "101 registers (the budget is 100), 17 bytes spilled (the budget is 16)");
  use = {"k", 1, 1001, 9, 0, 0};
  EXPECT_EQ(over_budget(use, budget),
            "1001 bytes of shared memory (the budget is 1000), 9 bytes of stack (the budget is 8)");
}

TEST(BodyCheck, RefusesWhatItDoesNotKnow) {
  EXPECT_THROW(check_bodies(std::vector<std::string>{"sm_90"}), Error);
  EXPECT_THROW(check_bodies({}), Error);
  EXPECT_THROW(check_bodies(std::vector<std::string>{"sm_90a"}, {.ops = {"linnear"}}), Error);
}

}  // namespace
}  // namespace heddle::cuda
