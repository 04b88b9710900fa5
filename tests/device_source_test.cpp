// Compiles the device programs of real programs for each architecture, without a GPU.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "heddle/backend/cuda/compiler/jit.h"
#include "heddle/backend/cuda/compiler/nvrtc.h"
#include "heddle/backend/cuda/compiler/sources.h"
#include "heddle/backend/cuda/program/program_source.h"
#include "heddle/ir/call/op_call.h"
#include "heddle/ir/registry.h"
#include "tests/support/case_memory.h"
#include "tests/support/golden.h"

namespace heddle {
namespace {

class DeviceSource : public testing::TestWithParam<std::string> {};

Planner planner_of_test() {
  EngineOptions options;
  options.target = gpu_target(3);
  return golden_planner("llama3-tiny", options);
}

// Kernels of single ops know no sizes, and keep all that a tile works with in registers, but for a few words where a whole
// kernel takes the calls that matter. Generic bodies are compiled for the newer architecture alone, and only that one's
// code is optimised, before all others: NVRTC optimises less after unoptimised code (jit.h).
TEST_P(DeviceSource, OpsByThemselvesCompile) {
  if (const std::string& why = cuda::why_no_compiler(); !why.empty()) GTEST_SKIP() << why;
  std::vector<cuda::CompileRequest> requests;
  const bool is_optimised = GetParam() == "sm_90a";
  const std::vector<std::string> options =
      is_optimised ? std::vector<std::string>{} : cuda::unoptimised_options();
  for (const OpSpec* op : all_ops()) {
    if (needs_step_record(*op) || (!is_optimised && !cuda::has_variant(op->name))) continue;
    CaseMemory memory;
    std::vector<std::byte> args = op->cases().front().args;
    op->infer(args.data());
    allocate(*op, args.data(), memory);
    requests.push_back(
        {op->name, cuda::standalone_source(*op, args.data(), Knowledge::kTypes), GetParam(), options});
  }
  EXPECT_FALSE(requests.empty());
  const std::vector<cuda::Compiled> all = cuda::compile(requests);
  for (size_t i = 0; is_optimised && i < all.size(); ++i)
    for (const KernelUse& kernel : all[i].kernels) {
      std::printf("%-18s %-12.60s %3d registers, %6d bytes shared, stack %4d, spills %4d + %4d, %.1f s\n",
                  requests[i].name.c_str(), kernel.name.c_str(), kernel.registers, kernel.shared_bytes,
                  kernel.stack_bytes, kernel.spill_store_bytes, kernel.spill_load_bytes, all[i].seconds);
      EXPECT_LE(kernel.spill_store_bytes + kernel.spill_load_bytes, get_op(requests[i].name).kernel ? 48 : 0)
          << requests[i].name;
    }
}

// Files of the kit and of whole kernels include what they use, and open their own namespaces.
TEST_P(DeviceSource, FilesCompileByThemselves) {
  if (const std::string& why = cuda::why_no_compiler(); !why.empty()) GTEST_SKIP() << why;
  std::vector<cuda::CompileRequest> requests;
  for (const EmbeddedFile& file : cuda::device_sources()) {
    const std::string path(file.path);
    const bool is_kernel = path.find("_kernel.sm") != path.npos, is_newer = path.ends_with(".sm90.cuh");
    if (path.ends_with(".cuh") && (is_kernel || path.starts_with("heddle/kit/")) &&
        (!is_newer || GetParam() == "sm_90a"))
      requests.push_back({"alone: " + path, fmt::format("#include \"{}\"\n", path), GetParam(),
                          cuda::unoptimised_options()});
  }
  EXPECT_GT(requests.size(), 50u);
  EXPECT_NO_THROW(cuda::compile(requests));
}

TEST_P(DeviceSource, Compiles) {
  if (const std::string& why = cuda::why_no_compiler(); !why.empty()) GTEST_SKIP() << why;
  std::vector<cuda::CompileRequest> requests;
  const std::vector<std::string> options = cuda::unoptimised_options();
  const Planner planner = planner_of_test();
  const Program one = planner.program(1, 1), many = planner.program(64, 2);
  requests.push_back(
      {"decode", cuda::megakernel_source(one, GetParam(), Knowledge::kForms), GetParam(), options});
  requests.push_back({"specialised decode", cuda::megakernel_source(one, GetParam(), Knowledge::kSizes),
                      GetParam(), options});
  // The calls of a program hold the bodies that OpsByThemselvesCompile has compiled for the older architecture.
  for (const Program* program : {&one, &many})
    for (size_t i = 0; GetParam() == "sm_90a" && i < program->opcodes.size(); ++i) {
      const Opcode& opcode = program->opcodes[i];
      const Knowledge knowledge = program == &one ? Knowledge::kSizes : Knowledge::kForms;
      requests.push_back(
          {fmt::format("{} {}", program == &one ? "decode" : "prefill", fmt::join(opcode.ops, "+")),
           cuda::call_source(opcode, cuda::KernelTraits::of(*program, GetParam()),
                             cuda::known_args(*program, i, knowledge)),
           GetParam(), options});
    }
  const std::vector<cuda::Compiled> all = cuda::compile(requests);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_FALSE(all[i].kernels.empty()) << requests[i].name;
    for (const KernelUse& kernel : all[i].kernels)
      EXPECT_LE(kernel.shared_bytes, 17 << 10) << requests[i].name << ", " << kernel.name;
  }
}

// The number of consumer warps is a constant of a kernel.
TEST_P(DeviceSource, CompilesForAnyNumberOfWarps) {
  if (const std::string& why = cuda::why_no_compiler(); !why.empty()) GTEST_SKIP() << why;
  std::vector<cuda::CompileRequest> requests;
  for (const auto& [op, warps] : {std::pair{"rms_norm", 4}, {"rms_norm", 12}, {"linear", 4}}) {
    cuda::KernelTraits traits{.warps = warps};
    traits.types[size_t(DType::kBf16)] = true;
    requests.push_back({fmt::format("{} of {} warps", op, warps), cuda::call_source({.ops = {op}}, traits),
                        GetParam(), cuda::unoptimised_options()});
    EXPECT_NE(requests.back().source.find(fmt::format("launch_bounds__({}, 1)", 32 * (warps + 1))),
              std::string::npos);
  }
  for (const cuda::Compiled& compiled : cuda::compile(requests)) EXPECT_FALSE(compiled.kernels.empty());
}

TEST(MegakernelSource, SaysWhetherAllWeightsComeThroughTheRing) {
  const Planner planner = planner_of_test();
  EXPECT_TRUE(cuda::KernelTraits::of(planner.program(1, 1), "sm_90a").draws);
  EXPECT_FALSE(cuda::KernelTraits::of(planner.program(64, 2), "sm_90a").draws);
}

INSTANTIATE_TEST_SUITE_P(Architectures, DeviceSource, testing::Values("sm_90a", "sm_80"));

}  // namespace
}  // namespace heddle
