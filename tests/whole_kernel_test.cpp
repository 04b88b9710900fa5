// Whole kernels of ops (ir/kernel.h): what fits, their configurations, and that sizes make no code of their own. No GPU is needed;
// op_call_gpu_test.cpp runs them.
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "heddle/backend/cuda/compiler/nvrtc.h"
#include "heddle/backend/cuda/program/body_check.h"
#include "heddle/backend/cuda/program/kernel_source.h"
#include "heddle/backend/cuda/program/requests.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/rules.h"
#include "heddle/ops/matmul/matmul.h"

namespace heddle {
namespace {

const std::byte* bytes(const auto& args) {
  return reinterpret_cast<const std::byte*>(&args);
}

Matmul product(i32 m, i32 n, i32 k, DType type = DType::kBf16, bool along_m = false, bool along_k = true) {
  Matmul args{.a = {.data = along_m ? dense(type, {k, m}) : dense(type, {m, k}), .transposed = along_m},
              .b = {.data = along_k ? dense(type, {n, k}) : dense(type, {k, n}), .transposed = along_k},
              .y = dense(type, {m, n})};
  args.a.data.buffer = 0, args.b.data.buffer = 1, args.y.buffer = 2;
  return args;
}

const KernelTarget& h100() {
  static const KernelTarget target = cuda::kernel_target_of("sm_90a");
  return target;
}

KernelPlan plan_of(const Matmul& args, const KernelTarget& target = h100()) {
  return get_op("matmul").kernel(bytes(args), target, {});
}

std::vector<OpConfig> configs(const Matmul& args) {
  return configs_of(get_op("matmul"), bytes(args), {.gpu = true, .kernels = &h100()});
}

TEST(WholeKernel, SaysWhatDoesNotFit) {
  const auto why = [](const Matmul& args) { return plan_of(args).why_not; };
  EXPECT_EQ(why(product(33, 64, 72)), "");
  EXPECT_EQ(why(product(33, 64, 72, DType::kF16, false, false)), "");
  EXPECT_EQ(why(product(33, 64, 71)), "a's rows are 142 bytes apart; must be a multiple of 16");
  EXPECT_EQ(why(product(33, 60, 72)), "y's rows are 120 bytes apart; must be a multiple of 16");
  EXPECT_EQ(why(product(33, 64, 72, DType::kBf16, true)),
            "a's columns are 66 bytes apart; must be a multiple of 16");
  EXPECT_EQ(why(product(32, 64, 72, DType::kF32)), "a is f32 and b is f32; must both be bf16 or f16");
  Matmul codes = product(32, 64, 72);
  codes.b.scales = dense(DType::kF32, {64, 1});
  codes.b.scales.buffer = 3;
  EXPECT_EQ(why(codes), "b has scales");
  EXPECT_NE(plan_of(product(33, 64, 72), cuda::kernel_target_of("sm_80")).why_not, "");
  EXPECT_NE(plan_of(product(33, 64, 72), cuda::kernel_target_of("sm_100a")).why_not, "");
}

// A prompt may be cut anywhere: what decides between sums of different order must not be its rows.
TEST(WholeKernel, FitsWhateverTheRows) {
  for (const auto& [n, k] : {std::pair{64, 72}, {1000, 4096}, {60, 72}, {64, 71}, {8, 8}})
    for (i32 m = 1; m < 600; m += 7)
      EXPECT_EQ(plan_of(product(m, n, k)).why_not.empty(), plan_of(product(1, n, k)).why_not.empty()) << m;
}

TEST(WholeKernel, ConfigurationsComeFirstAndTakeWhatADeviceHas) {
  for (const bool along_m : {false, true})
    for (const bool along_k : {false, true})
      for (const auto& [m, n, k] : {std::array{16, 1024, 4096},
                                    {304, 1024, 4096},
                                    {16, 4096, 4096},
                                    {8, 64, 128},
                                    {512, 14336, 4096},
                                    {8192, 8192, 8192}}) {
        const Matmul args = product(m, n, k, DType::kBf16, along_m, along_k);
        const std::vector<OpConfig> all = configs(args);
        ASSERT_GE(all.size(), 4u);
        EXPECT_TRUE(is_of_kernel(all.front()));
        EXPECT_EQ(plan_of(args).constants.values(), all.front().values()) << "the default is the first";
        for (const OpConfig& config : all) {
          EXPECT_EQ(config.reorders(), !is_of_kernel(config)) << config.text();
          if (!is_of_kernel(config)) continue;
          const KernelPlan plan = get_op("matmul").kernel(bytes(args), h100(), config);
          const KernelLaunch& launch = plan.launches.at(0);
          EXPECT_LE(launch.shared_bytes, h100().shared_bytes) << config.text();
          EXPECT_EQ(launch.grid % launch.cluster, 0u) << config.text();
          EXPECT_LE(i32(launch.grid), h100().multiprocessors);
          EXPECT_GE(plan.constants.at("stages"), 2) << config.text();
        }
      }
  // Programs have tiles alone.
  const Matmul args = product(64, 64, 64);
  for (const OpConfig& config : configs_of(get_op("matmul"), bytes(args), {.gpu = true}))
    EXPECT_FALSE(is_of_kernel(config) || config.reorders());
}

// Long sums of products with few columns come in two parts, for any number of rows, in every configuration.
TEST(WholeKernel, PartsOfASumFollowFromColumnsAndTerms) {
  for (const auto& [n, k, parts] :
       {std::array{1024, 4096, 2}, {1024, 8192, 2}, {512, 2048, 2}, {4096, 14336, 1}, {256, 1024, 1}})
    for (const i32 m : {1, 16, 200, 2048})
      for (const bool along_k : {false, true})
        for (const OpConfig& config : configs(product(m, n, k, DType::kBf16, false, along_k)))
          EXPECT_TRUE(!is_of_kernel(config) || config.at("split") == parts) << m << ", " << config.text();
}

// A thousand shapes have no more code than there are configurations.
TEST(WholeKernel, SizesMakeNoCode) {
  std::mt19937 random(7);
  std::set<std::string> texts, constants;
  for (int i = 0; i < 1000; ++i) {
    const auto size = [&](int most) { return 8 * i32(1 + random() % u32(most)); };
    Matmul args = product(size(600), size(2000), size(1000));
    args.a.data.stride[0] += 8 * i64(random() % 3);
    const KernelPlan plan = plan_of(args);
    ASSERT_EQ(plan.why_not, "");
    texts.insert(cuda::code_name(cuda::kernel_request(get_op("matmul"), bytes(args), plan, "sm_90a")));
    constants.insert(plan.constants.text());
  }
  EXPECT_EQ(texts.size(), constants.size());
  EXPECT_LE(texts.size(), 48u);
}

TEST(WholeKernel, CompilesWithoutSpills) {
#ifdef HEDDLE_SANITIZED
  GTEST_SKIP() << "NVRTC, which no sanitizer sees into: left to builds without one";
#endif
  if (const std::string& why = cuda::why_no_compiler(); !why.empty()) GTEST_SKIP() << why;
  for (const auto& [type, n] : {std::pair{DType::kBf16, 2048}, {DType::kF16, 2048}, {DType::kF16, 256}}) {
    const bool rows = type == DType::kBf16;
    const Matmul args = product(2048, n, 2048, type, !rows, rows);
    const cuda::CompileRequest request =
        cuda::kernel_request(get_op("matmul"), bytes(args), plan_of(args), "sm_90a");
    const cuda::Compiled compiled = cuda::compile(request);
    ASSERT_EQ(compiled.kernels.size(), 1u);
    EXPECT_EQ(cuda::over_budget(compiled.kernels[0], {}), "");
    EXPECT_EQ(compiled.log.find("(C75"), std::string::npos) << compiled.log;
  }
}

}  // namespace
}  // namespace heddle
