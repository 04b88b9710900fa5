// For tests that need a GPU (*_gpu_test.cpp): where there is none they are skipped, and say why.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "heddle/backend/cuda/compiler/nvrtc.h"
#include "heddle/backend/cuda/runtime/device.h"

namespace heddle::cuda {

class GpuTest : public testing::Test {
 protected:
  static const Device& device() { return Device::at(0); }
  void SetUp() override {
    if (!why_unavailable().empty()) GTEST_SKIP() << "no GPU can be used here: " << why_unavailable();
    if (!why_no_compiler().empty()) GTEST_SKIP() << "no GPU can be used here: " << why_no_compiler();
  }
};

}  // namespace heddle::cuda
