#include "heddle/backend/cuda/program/body_batch.h"

#include <gtest/gtest.h>

#include "heddle/backend/cuda/compiler/nvrtc.h"
#include "heddle/backend/cuda/program/program_source.h"
#include "heddle/ir/registry.h"

namespace heddle::cuda {
namespace {

constexpr const char* kArch = "sm_80";

WantedBody body_of(const std::string& op, const OpConfig& config = {}) {
  const Opcode opcode{.ops = {op}, .config = config};
  return {.alone = {.name = op,
                    .source = call_source(opcode, traits_for(1)),
                    .arch = kArch,
                    .options = {},
                    .may_be_packaged = false},
          .opcode = opcode};
}

TEST(BodyBatch, CompilesBodiesInOneText) {
  if (!why_no_compiler().empty()) GTEST_SKIP() << why_no_compiler();
  const std::vector<WantedBody> bodies = {body_of("add"), body_of("scale")};
  const std::vector<Result<Compiled>> results = compile_together(bodies);
  for (size_t i = 0; i < bodies.size(); ++i) {
    ASSERT_TRUE(results[i]) << results[i].message();
    const Compiled& part = results[i].value();
    ASSERT_EQ(part.kernels.size(), 1u) << "its own, and no other's";
    EXPECT_EQ(part.kernels.front().name, fmt::format("k{}_call", i));
    EXPECT_GT(part.kernels.front().registers, 0);
  }
}

TEST(BodyBatch, NamesTheBodyThatDoesNotCompile) {
  if (!why_no_compiler().empty()) GTEST_SKIP() << why_no_compiler();
  // The body of bias has no configurations, so that its text names what is not there.
  const std::vector<WantedBody> bodies = {body_of("add"), body_of("bias", OpConfig{{"rows", 7}}),
                                          body_of("scale")};
  const std::vector<Result<Compiled>> results = compile_together(bodies);
  EXPECT_TRUE(results[0]);
  EXPECT_TRUE(results[2]);
  ASSERT_FALSE(results[1]);
  EXPECT_TRUE(results[1].message().starts_with("[bias] does not compile for sm_80")) << results[1].message();
}

TEST(BodyBatch, SaysSoWhereBodiesCompileAloneOnly) {
  if (!why_no_compiler().empty()) GTEST_SKIP() << why_no_compiler();
  std::vector<WantedBody> bodies = {body_of("add"), body_of("scale", OpConfig{{"rows", 7}})};
  bodies[1].alone.source = body_of("scale").alone.source;
  for (const Result<Compiled>& result : compile_together(bodies)) {
    ASSERT_FALSE(result);
    EXPECT_TRUE(result.message().starts_with("[2 bodies in one text: add, scale]")) << result.message();
  }
}

}  // namespace
}  // namespace heddle::cuda
