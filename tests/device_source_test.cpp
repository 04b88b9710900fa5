// The device programs of real programs compile, for each architecture, without a GPU.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "heddle/backend/cuda/jit.h"
#include "heddle/backend/cuda/nvrtc.h"
#include "heddle/backend/cuda/program_source.h"
#include "heddle/ir/op_call.h"
#include "tests/support/case_memory.h"
#include "tests/support/golden.h"

namespace heddle {
namespace {

class DeviceSource : public testing::TestWithParam<std::string> {};

Planner planner_for(bool tagged) {
  EngineOptions options;
  options.target = gpu_target(3);
  options.target->topology.tagged = options.target->whole_tagged = tagged;
  return golden_planner("llama3-tiny", options);
}

TEST_P(DeviceSource, Compiles) {
#ifdef HEDDLE_SANITIZED
  GTEST_SKIP() << "minutes of NVRTC, which no sanitizer sees into: left to builds without one";
#endif
  if (const std::string& why = cuda::why_no_compiler(); !why.empty()) GTEST_SKIP() << why;
  std::vector<cuda::CompileRequest> requests;
  const Planner planner = planner_for(false);
  const Program one = planner.program(1, 1), many = planner.program(64, 2);
  const Program tagged = planner_for(true).program(1, 1);
  requests.push_back({"decode", cuda::megakernel_source(one, GetParam(), Knowledge::kForms), GetParam(), {}});
  requests.push_back(
      {"specialised decode", cuda::megakernel_source(one, GetParam(), Knowledge::kSizes), GetParam(), {}});
  requests.push_back(
      {"tagged decode", cuda::megakernel_source(tagged, GetParam(), Knowledge::kSizes), GetParam(), {}});
  for (const Program* program : {&one, &many})
    for (size_t i = 0; i < program->opcodes.size(); ++i) {
      const Opcode& opcode = program->opcodes[i];
      const Knowledge knowledge = program == &one ? Knowledge::kSizes : Knowledge::kForms;
      requests.push_back(
          {fmt::format("{} {}", program == &one ? "decode" : "prefill", fmt::join(opcode.ops, "+")),
           cuda::call_source(opcode, cuda::KernelTraits::of(*program, GetParam()), GetParam(),
                             cuda::known_args(*program, i, knowledge)),
           GetParam(),
           {}});
    }
  const std::vector<cuda::Compiled> all = cuda::compile(requests);
  for (size_t i = 0; i < all.size(); ++i) {
    const cuda::Compiled& compiled = all[i];
    std::printf("%s\n", requests[i].name.c_str());
    EXPECT_FALSE(compiled.kernels.empty());
    for (const cuda::KernelUse& kernel : compiled.kernels) {
      std::printf("  %-12.60s %3d registers, %6d bytes shared, stack %4d, spills %4d + %4d\n",
                  kernel.name.c_str(), kernel.registers, kernel.shared_bytes, kernel.stack_bytes,
                  kernel.spill_store_bytes, kernel.spill_load_bytes);
      EXPECT_LE(kernel.shared_bytes, 17 << 10) << kernel.name;
    }
  }
}

// Kernels of single ops know no sizes, and keep all that a tile works with in registers.
TEST_P(DeviceSource, OpsByThemselvesCompile) {
#ifdef HEDDLE_SANITIZED
  GTEST_SKIP() << "minutes of NVRTC, which no sanitizer sees into: left to builds without one";
#endif
  if (const std::string& why = cuda::why_no_compiler(); !why.empty()) GTEST_SKIP() << why;
  std::vector<cuda::CompileRequest> requests;
  for (const OpSpec* op : all_ops()) {
    if (needs_step_record(*op)) continue;
    CaseMemory memory;
    std::vector<std::byte> args = op->cases().front().args;
    op->infer(args.data());
    allocate(*op, args.data(), memory);
    requests.push_back(
        {op->name, cuda::standalone_source(*op, args.data(), GetParam(), Knowledge::kTypes), GetParam(), {}});
  }
  EXPECT_FALSE(requests.empty());
  const std::vector<cuda::Compiled> all = cuda::compile(requests);
  for (size_t i = 0; i < all.size(); ++i)
    for (const cuda::KernelUse& kernel : all[i].kernels) {
      std::printf("%-18s %-12.60s %3d registers, %6d bytes shared, stack %4d, spills %4d + %4d, %.1f s\n",
                  requests[i].name.c_str(), kernel.name.c_str(), kernel.registers, kernel.shared_bytes,
                  kernel.stack_bytes, kernel.spill_store_bytes, kernel.spill_load_bytes, all[i].seconds);
      EXPECT_LE(kernel.spill_store_bytes + kernel.spill_load_bytes, 0) << requests[i].name;
    }
}

INSTANTIATE_TEST_SUITE_P(Architectures, DeviceSource, testing::Values("sm_80", "sm_90a"));

}  // namespace
}  // namespace heddle
