#include "heddle/backend/cuda/compiler/archs.h"

#include <gtest/gtest.h>

#include "heddle/base/error.h"

namespace heddle::cuda {
namespace {

TEST(Archs, AnUnknownOneTakesTheNewestOfItsGeneration) {
  EXPECT_STREQ(arch_of("sm_80").name, "sm_80");
  EXPECT_STREQ(arch_of("sm_86").name, "sm_89");
  EXPECT_STREQ(arch_of("sm_103a").name, "sm_100a");
  EXPECT_STREQ(arch_of("sm_121").name, "sm_120");
  for (const char* name : {"sm_70", "sm_", "h100", ""}) EXPECT_THROW(arch_of(name), Error) << name;
}

TEST(Archs, EveryModelHasAKnownArchitecture) {
  for (const GpuModel& model : known_models()) EXPECT_NO_THROW(require_known_arch(model.arch)) << model.name;
  EXPECT_THROW(require_known_arch("sm_86"), Error);
}

}  // namespace
}  // namespace heddle::cuda
