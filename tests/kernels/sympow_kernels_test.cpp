// Whole kernels of symmetric powers and power attention (ir/kernel.h): what fits, and that sizes make no code of their own. No GPU is
// needed.
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "heddle/backend/cuda/compiler/nvrtc.h"
#include "heddle/backend/cuda/program/body_check.h"
#include "heddle/backend/cuda/program/kernel_source.h"
#include "heddle/backend/cuda/program/requests.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/rules.h"
#include "heddle/ops/sympow/sympow_columns.h"

namespace heddle {
namespace {

struct Sizes {
  i32 batch = 1, rows = 1000, heads = 3, dim = 64, columns = 64, chunk = 256, power = 2;
  DType type = DType::kBf16;
};

// Arguments of an op whose tensors have the names of these ops, with gates.
std::vector<std::byte> args_of(const OpSpec& op, const Sizes& of) {
  std::vector<std::byte> args = op.defaults;
  const i32 chunk = of.chunk > 0 && of.chunk < of.rows ? of.chunk : of.rows;
  const i32 chunks = (of.rows + chunk - 1) / chunk, width = i32(sympow_width(of.power, of.dim));
  const auto shape = [&](const Field& field) -> std::vector<i32> {
    const std::string& name = field.name;
    if (field.dims_text == "B, T, H") return {of.batch, of.rows, of.heads};
    if (name == "s0" || name == "last" || name == "dlast") return {of.batch, of.heads, width, of.columns};
    if (name == "s" || name == "u" || name == "ds") return {of.batch, of.heads, chunks * width, of.columns};
    const bool is_row = name == "x" || name == "q" || name == "k";
    return {of.batch, of.rows, of.heads, is_row ? of.dim : name == "past" ? of.columns + 8 : of.columns};
  };
  for (const Field& field : op.fields)
    if (field.is_attribute()) {
      if (field.name == "power" || field.name == "chunk" || field.name == "chunks")
        set_attribute(op.name, field, args.data(),
                      i64(field.name == "power"   ? of.power
                          : field.name == "chunk" ? of.chunk
                                                  : chunks));
    } else if (!field.writes()) {
      const bool wide = field.dims_text == "B, T, H" || field.name == "dlast" || field.name == "s0";
      field.tensor(args.data()) = dense(wide ? DType::kF32 : of.type, shape(field));
    }
  op.infer(args.data());
  u32 buffer = 0;
  for (const Field& field : op.fields)
    if (field.is_tensor()) field.tensor(args.data()).buffer = buffer++;
  return args;
}

KernelPlan sympow_plan(const char* name, const Sizes& of, const char* arch = "sm_90a") {
  const OpSpec& op = get_op(name);
  return op.kernel(args_of(op, of).data(), cuda::kernel_target_of(arch), {});
}

constexpr const char* kOps[] = {
    "sympow_mma",      "sympow_mma_backward",      "mma_sympow",
    "power_attention", "power_attention_backward", "power_attention_keys_backward",
    "state_scan",      "state_scan_backward"};

TEST(SympowKernels, SayWhatDoesNotFit) {
  for (const char* op : kOps) {
    EXPECT_EQ(sympow_plan(op, {}).why_not, "") << op;
    EXPECT_EQ(sympow_plan(op, {.dim = 24, .columns = 40, .type = DType::kF16}).why_not, "") << op;
    EXPECT_NE(sympow_plan(op, {.columns = 36}).why_not, "") << op;
    EXPECT_NE(sympow_plan(op, {.type = DType::kF32}).why_not, "") << op;
    const bool any = std::string(op).starts_with("state_scan");
    EXPECT_EQ(sympow_plan(op, {}, "sm_80").why_not.empty(), any) << op;
  }
  for (const char* op : {"sympow_mma", "sympow_mma_backward", "mma_sympow"})
    for (const i32 dim : {8, 16, 32, 64})
      EXPECT_EQ(sympow_plan(op, {.rows = 100, .heads = 1, .dim = dim, .chunk = 0, .power = 4}).why_not, "")
          << dim;
  EXPECT_EQ(sympow_plan("power_attention", {.power = 4}).why_not, "");
  EXPECT_EQ(sympow_plan("mma_sympow", {.chunk = 100}).why_not, "chunk = 100; must be 0 or a multiple of 64");
  EXPECT_EQ(sympow_plan("power_attention", {.columns = 128}).why_not, "");
  EXPECT_EQ(sympow_plan("power_attention_backward", {.columns = 128}).why_not,
            "v has rows of 128; must be at most 80");
}

TEST(SympowKernels, TakeWhatADeviceHas) {
  for (const char* op : kOps)
    for (const i32 dim : {8, 64, 128})
      for (const i32 columns : {8, 64, 72, 80, 128}) {
        const KernelPlan plan = sympow_plan(op, {.dim = dim, .columns = columns});
        if (!plan.why_not.empty()) continue;
        for (const KernelLaunch& launch : plan.launches) {
          EXPECT_LE(launch.shared_bytes, cuda::kernel_target_of("sm_90a").shared_bytes) << op;
          EXPECT_EQ(launch.grid % launch.cluster, 0u) << op;
        }
        if (plan.constants.contains("stages")) {
          EXPECT_GE(plan.constants.at("stages"), 2) << op;
        }
      }
}

// Lengths, heads and chunks have one code, and decide nothing.
TEST(SympowKernels, SizesMakeNoCode) {
  std::mt19937 random(7);
  for (const char* name : kOps) {
    const OpSpec& op = get_op(name);
    std::set<std::string> texts;
    for (int i = 0; i < 50; ++i) {
      const auto size = [&](int most) { return i32(1 + random() % u32(most)); };
      const Sizes of{.batch = size(4), .rows = size(3000), .heads = size(9), .chunk = 64 * size(20)};
      const auto args = args_of(op, of);
      const KernelPlan plan = op.kernel(args.data(), cuda::kernel_target_of("sm_90a"), {});
      ASSERT_EQ(plan.why_not, "") << name;
      texts.insert(cuda::code_name(cuda::kernel_request(op, args.data(), plan, "sm_90a")));
    }
    EXPECT_EQ(texts.size(), 1u) << name;
  }
}

void expect_no_spills(const char* name, const Sizes& of) {
  const OpSpec& op = get_op(name);
  const auto args = args_of(op, of);
  const KernelPlan plan = op.kernel(args.data(), cuda::kernel_target_of("sm_90a"), {});
  cuda::CompileRequest request = cuda::kernel_request(op, args.data(), plan, "sm_90a");
  request.may_be_packaged = false;  // packages have no reports of ptxas
  const cuda::Compiled compiled = cuda::compile(request);
  ASSERT_EQ(compiled.kernels.size(), plan.launches.size());
  for (const auto& use : compiled.kernels) EXPECT_EQ(cuda::over_budget(use, {}), "") << name;
  for (const char* number : {"C7510", "C7512", "C7514", "C7517"})
    EXPECT_EQ(compiled.log.find(number), std::string::npos) << name << compiled.log;
}

TEST(SympowKernels, CompileWithoutSpills) {
#ifdef HEDDLE_SANITIZED
  GTEST_SKIP() << "NVRTC, which no sanitizer sees into: left to builds without one";
#endif
  if (const std::string& why = cuda::why_no_compiler(); !why.empty()) GTEST_SKIP() << why;
  for (const char* name : kOps) expect_no_spills(name, {});
  for (const i32 columns : {64, 96, 128})
    for (const char* name : {"sympow_mma", "sympow_mma_backward", "mma_sympow"})
      expect_no_spills(name, {.dim = 32, .columns = columns, .chunk = 0, .power = 4});
}

}  // namespace
}  // namespace heddle
