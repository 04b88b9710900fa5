#include "heddle/backend/cuda/body_check.h"

#include <gtest/gtest.h>

#include "heddle/backend/cuda/body_source.h"
#include "heddle/backend/cuda/nvrtc.h"
#include "heddle/base/error.h"

namespace heddle::cuda {
namespace {

TEST(BodySource, NamesStructsAsOpsDeclareThem) {
  EXPECT_EQ(args_struct("add"), "Add");
  EXPECT_EQ(args_struct("rms_norm"), "RmsNorm");
}

TEST(BodySource, AMainOpCarriesEveryPartOfAChainAndOthersStandAlone) {
  for (const OpSpec* op : all_ops()) {
    const std::string text = body_source(*op, all_ops());
    EXPECT_NE(text.find(std::string("void ") + op->name + "_tile("), std::string::npos) << text;
    for (const OpSpec* part : all_ops()) {
      const std::string body = std::string(part->name) + "::Body::";
      EXPECT_EQ(text.find(" " + body + "prologue(") != std::string::npos,
                op->traits.main && part->traits.prologue)
          << op->name << " and " << part->name;
      EXPECT_EQ(text.find(" " + body + "epilogue(") != std::string::npos,
                op->traits.main && part->traits.epilogue)
          << op->name << " and " << part->name;
    }
  }
}

TEST(BodyCheck, EveryBodyCompilesWithinItsBudget) {
  if (!why_no_compiler().empty()) GTEST_SKIP() << why_no_compiler();
  const std::vector<BodyCheck> checks = check_bodies(std::vector<std::string>{"sm_90a"});
  ASSERT_EQ(checks.size(), all_ops().size());
  for (const BodyCheck& check : checks) {
    EXPECT_EQ(check.failure, "") << check.op;
    EXPECT_EQ(check.use.name, check.op + "_tile");
    EXPECT_GT(check.use.registers, 0) << check.op;
  }
}

TEST(BodyCheck, RefusesUnknownArchitectures) {
  EXPECT_THROW(check_bodies(std::vector<std::string>{"sm_90"}), Error);
  EXPECT_THROW(check_bodies({}), Error);
}

}  // namespace
}  // namespace heddle::cuda
