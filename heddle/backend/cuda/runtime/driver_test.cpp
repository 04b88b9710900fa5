#include "heddle/backend/cuda/runtime/driver.h"

#include <gtest/gtest.h>

#include "heddle/backend/cuda/runtime/device.h"
#include "heddle/backend/cuda/runtime/memory.h"
#include "heddle/base/error.h"
#include "heddle/ir/executor/executor.h"

namespace heddle::cuda {
namespace {

TEST(Driver, WithoutAGpuEveryUseSaysWhy) {
  if (why_unavailable().empty()) GTEST_SKIP() << "there is a GPU here: " << Device::at(0).name();
  EXPECT_EQ(Device::count(), 0);
  for (void (*use)() : {+[] { Device::at(0); }, +[] { const DeviceBuffer buffer(16, Device::at(0)); },
                        +[] { const Stream stream(Device::at(0)); }})
    try {
      use();
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
      EXPECT_NE(std::string(error.what()).find(why_unavailable()), std::string::npos) << error.what();
    }
}

TEST(Driver, EnvSaysWhatThereIsOfAGpu) {
  for (const Backend* backend : all_backends()) {
    if (std::string(backend->name) != "cuda") continue;
    const std::string text = backend->describe();
    for (const std::string& part :
         {std::string("gpu  "), std::string("nvrtc  "), std::string("cache  "), why_unavailable()})
      EXPECT_NE(text.find(part), std::string::npos) << "no " << part << " in " << text;
    return;
  }
  FAIL() << "there is no backend cuda";
}

TEST(Device, NamesArchitecturesAsTheCompilerDoes) {
  EXPECT_EQ(arch_name(8, 0), "sm_80");
  EXPECT_EQ(arch_name(8, 9), "sm_89");
  EXPECT_EQ(arch_name(9, 0), "sm_90a");
  EXPECT_EQ(arch_name(10, 0), "sm_100a");
  EXPECT_EQ(arch_name(12, 0), "sm_120");
}

}  // namespace
}  // namespace heddle::cuda
