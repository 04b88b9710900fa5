// Whole kernels of ops (ir/kernel.h): what fits, their configurations, and that sizes make no code of their own. No GPU is needed;
// op_call_gpu_test.cpp runs them.
#include <random>
#include <set>
#include <type_traits>

#include <gtest/gtest.h>

#include "heddle/backend/cuda/compiler/nvrtc.h"
#include "heddle/backend/cuda/program/body_check.h"
#include "heddle/backend/cuda/program/kernel_source.h"
#include "heddle/backend/cuda/program/requests.h"
#include "heddle/ir/call/op_call.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/rules.h"
#include "heddle/ops/flash_attention/flash_attention.h"
#include "heddle/ops/flash_attention/flash_attention_backward.h"
#include "heddle/ops/matmul/bmm.h"
#include "heddle/ops/matmul/grouped_matmul.h"
#include "heddle/ops/matmul/grouped_terms.h"
#include "heddle/ops/matmul/matmul.h"
#include "heddle/ops/matmul/operand_copy.h"
#include "heddle/ops/matmul/product_kernel.h"
#include "heddle/ops/matmul/scaled_mm.h"
#include "tests/kernels/h100.h"

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
  EXPECT_EQ(why(product(32, 64, 72, DType::kF32)),
            "a is f32 and b is f32; must both be bf16 or f16, or f32 where tf32 is allowed");
  Matmul codes = product(32, 64, 72);
  codes.b.scales = dense(DType::kF32, {64, 1});
  codes.b.scales.buffer = 3;
  EXPECT_EQ(why(codes), "b has scales");
  EXPECT_NE(plan_of(product(33, 64, 72), cuda::kernel_target_of("sm_80")).why_not, "");
  EXPECT_NE(plan_of(product(33, 64, 72), cuda::kernel_target_of("sm_100a")).why_not, "");
}

// Bulk copies bring lines that begin at multiples of 16 bytes: other operands are copied first, and threads store y.
TEST(WholeKernel, CopiesOperandsThatLieAnywhere) {
  const auto why = [](const Matmul& args) { return plan_of(args).why_not; };
  const KernelPlan whole = plan_of(product(33, 64, 72));
  EXPECT_EQ(whole.launches.size(), 1u);
  EXPECT_EQ(whole.workspace_bytes, 0);
  EXPECT_FALSE(whole.constants.contains("copies") || whole.constants.contains("direct"));

  const KernelPlan odd_rows = plan_of(product(33, 64, 71));
  EXPECT_EQ(odd_rows.constants.at("copies"), kCopiesA | kCopiesB);
  EXPECT_FALSE(odd_rows.constants.contains("direct"));
  EXPECT_EQ(odd_rows.workspace_bytes, (33 + 64) * 256) << "lines of 142 bytes take 256";
  ASSERT_EQ(odd_rows.launches.size(), 2u);
  EXPECT_EQ(odd_rows.launches[0].name, "CopyKernel");
  EXPECT_TRUE(odd_rows.launches[0].maps.empty());
  const std::vector<KernelMap>& maps = odd_rows.launches[1].maps;
  ASSERT_EQ(maps.size(), 3u);
  EXPECT_TRUE(maps[0].in_workspace && maps[1].in_workspace && !maps[2].in_workspace);
  EXPECT_EQ(maps[0].offset, 0);
  EXPECT_EQ(maps[1].offset, 33 * 256);
  EXPECT_EQ(maps[1].stride[1], 256);
  EXPECT_EQ(maps[1].size[0], 71) << "nothing reads what pads a line";

  const KernelPlan odd_columns = plan_of(product(33, 60, 72));
  EXPECT_EQ(odd_columns.constants.at("direct"), 1);
  EXPECT_EQ(odd_columns.launches.size(), 1u) << "no operand is copied";
  EXPECT_EQ(odd_columns.launches[0].maps.size(), 2u);
  Matmul gaps = product(33, 61, 72);
  gaps.y.stride[0] = 64;
  EXPECT_EQ(plan_of(gaps).constants.at("direct"), 1) << "a bulk store would write what lies between rows";
  EXPECT_EQ(why(product(1000, 33, 33)),
            "it has few columns and terms, and operands that would have to be copied first");
  EXPECT_EQ(why(product(1000, 33, 40)), "") << "nothing is copied";

  Matmul shifted = product(33, 64, 72);
  shifted.b.data.data = reinterpret_cast<u8*>(size_t(1024 + 8));
  const KernelPlan by_address = plan_of(shifted);
  EXPECT_TRUE(by_address.from_anywhere);
  EXPECT_EQ(by_address.constants.at("copies"), kCopiesB);
  shifted.b.data.data = reinterpret_cast<u8*>(size_t(1024));
  EXPECT_EQ(plan_of(shifted).launches.size(), 1u);
  for (const auto& [name, value] : whole.constants.values())
    EXPECT_EQ(by_address.constants.at(name), value)
        << "tiles, and so bits, are those of aligned operands: " << name;
}

// Rows of slabs that lie in two lines of memory take longer, so that tiles are taller, CTAs share operands, or tiles are those of y
// transposed, where these fill the last wave better.
TEST(WholeKernel, TilesFollowFromWhereLinesBegin) {
  const auto tile = [](i32 m, i32 n, i32 k) {
    const OpConfig constants = plan_of(product(m, n, k, DType::kBf16, true)).constants;
    return std::array{constants.at("rows"), constants.at("columns"), constants.at("cluster")};
  };
  EXPECT_EQ(tile(2584, 4048, 5032), (std::array<i64, 3>{256, 176, 1}));
  EXPECT_EQ(tile(2624, 4096, 5056)[2], 1) << "lines of whole 128 bytes";
  EXPECT_EQ(tile(120, 4048, 5032), tile(120, 4096, 5056)) << "few rows were not measured";
  const KernelPlan turned = plan_of(product(280, 6968, 5104, DType::kBf16, true, true));
  EXPECT_EQ(turned.constants.at("turned"), 1);
  const std::vector<KernelMap>& maps = turned.launches.at(0).maps;
  ASSERT_EQ(maps.size(), 3u);
  EXPECT_EQ(maps[0].size[1], 6968) << "b's columns are rows of tiles";
}

TEST(WholeKernel, MultipliesF32WhereTf32IsAllowed) {
  Matmul args = product(32, 64, 72, DType::kF32);
  args.allow_tf32 = true;
  const KernelPlan plan = plan_of(args);
  EXPECT_EQ(plan.why_not, "");
  const KernelLaunch& launch = plan.launches.at(0);
  EXPECT_TRUE(launch.maps[0].rounds_to_tf32 && launch.maps[1].rounds_to_tf32 &&
              !launch.maps[2].rounds_to_tf32);
  EXPECT_EQ(launch.maps[0].box[0], 32) << "elements of 128 bytes";
  Matmul turned = product(32, 64, 72, DType::kF32, false, false);
  turned.allow_tf32 = true;
  EXPECT_EQ(plan_of(turned).why_not, "b is f32 in rows; must lie in columns");
  Matmul narrow = product(32, 64, 72);
  narrow.allow_tf32 = true;
  EXPECT_EQ(plan_of(narrow).why_not, "");
  EXPECT_FALSE(plan_of(narrow).launches.at(0).maps[0].rounds_to_tf32);
}

Matrices stack(i32 batches, i32 rows, i32 columns, bool transposed, u32 buffer) {
  Matrices made{.data = transposed ? dense(DType::kBf16, {batches, columns, rows})
                                   : dense(DType::kBf16, {batches, rows, columns}),
                .transposed = transposed};
  made.data.buffer = buffer;
  return made;
}

TEST(WholeKernel, MultipliesBatchesInOneLaunch) {
  const auto plan_of_batches = [](const Bmm& args) { return get_op("bmm").kernel(bytes(args), h100(), {}); };
  Bmm args{.a = stack(12, 100, 64, false, 0),
           .b = stack(12, 64, 72, false, 1),
           .y = stack(12, 100, 72, false, 2).data};
  const KernelPlan plan = plan_of_batches(args);
  ASSERT_EQ(plan.why_not, "");
  ASSERT_EQ(plan.launches.size(), 1u);
  for (const KernelMap& map : plan.launches[0].maps) {
    EXPECT_EQ(map.rank, 3);
    EXPECT_EQ(map.size[2], 12);
    EXPECT_EQ(map.box[2], 1);
  }
  EXPECT_EQ(plan.launches[0].grid % 12, 0u) << "as many tiles of each";
  args.b.data.stride[0] = 0;
  const KernelPlan copies = plan_of_batches(args);
  EXPECT_EQ(copies.constants.at("copies"), kCopiesB) << "maps have no distance of 0";
  EXPECT_EQ(copies.launches.at(1).maps[1].stride, (std::array<i64, 5>{0, 256, 64 * 256}));
  Bmm one{.a = stack(1, 100, 64, false, 0),
          .b = stack(1, 64, 40, false, 1),
          .y = stack(1, 100, 40, false, 2).data};
  one.a.data.stride[0] = 7;
  EXPECT_EQ(plan_of_batches(one).why_not, "") << "nothing reads the distance of a single matrix";
}

ScaledMm scaled(i32 m, i32 n, i32 k, std::array<i32, 2> left, std::array<i32, 2> right) {
  ScaledMm args{.a = {.data = dense(DType::kF8E4M3, {m, k})},
                .b = {.data = dense(DType::kF8E4M3, {n, k}), .transposed = true},
                .scale_a = {.data = dense(DType::kF32, {left[0], left[1]})},
                .scale_b = {.data = dense(DType::kF32, {right[0], right[1]})}};
  args.a.data.buffer = 0, args.b.data.buffer = 1, args.scale_a.data.buffer = 2, args.scale_b.data.buffer = 3;
  get_op("scaled_mm").infer(reinterpret_cast<std::byte*>(&args));
  args.y.buffer = 4;
  return args;
}

TEST(WholeKernel, ScalesWhatItAdds) {
  const auto plan_of_scaled = [](const ScaledMm& args) {
    return get_op("scaled_mm").kernel(bytes(args), h100(), {});
  };
  const auto constants = [&](const ScaledMm& args) {
    const KernelPlan plan = plan_of_scaled(args);
    EXPECT_EQ(plan.why_not, "");
    return std::array{plan.constants.at("promotes"), plan.constants.at("scales")};
  };
  ScaledMm args = scaled(100, 256, 512, {1, 1}, {1, 1});
  EXPECT_EQ(constants(args), (std::array<i64, 2>{1, 1}));
  args.fast_sums = true;
  EXPECT_EQ(constants(args), (std::array<i64, 2>{0, 1}));
  EXPECT_EQ(constants(scaled(100, 256, 512, {100, 1}, {1, 256})), (std::array<i64, 2>{1, 1}));
  ScaledMm blocks = scaled(100, 256, 512, {100, 4}, {4, 2});
  EXPECT_EQ(constants(blocks), (std::array<i64, 2>{1, 2}));
  blocks.fast_sums = true;
  EXPECT_EQ(constants(blocks), (std::array<i64, 2>{1, 2})) << "blocks are added in f32";
  args.b = {.data = dense(DType::kF8E4M3, {512, 256})};
  args.b.data.buffer = 1;
  EXPECT_EQ(plan_of_scaled(args).why_not, "b is f8e4m3 in rows; must lie in columns");
  EXPECT_THROW(scaled(100, 256, 512, {100, 2}, {4, 2}), Error);
}

// The kernel of mma.sync takes what that with wgmma does not, and devices without it.
TEST(WholeKernel, MultipliesCodesByWarps) {
  const auto plan_on = [](const char* arch, const ScaledMm& args) {
    return get_op("scaled_mm").kernel(bytes(args), cuda::kernel_target_of(arch), {});
  };
  const ScaledMm one = scaled(100, 256, 512, {1, 1}, {1, 1}),
                 blocks = scaled(100, 256, 512, {100, 4}, {4, 2}),
                 columns = scaled(100, 256, 512, {100, 4}, {4, 256}),
                 short_sum = scaled(100, 256, 96, {100, 1}, {1, 2});
  EXPECT_EQ(plan_on("sm_90a", one).file, "sm90");
  EXPECT_EQ(plan_on("sm_90a", columns).file, "sm80");
  EXPECT_EQ(plan_on("sm_90a", short_sum).file, "sm80");
  EXPECT_EQ(plan_on("sm_80", one).why_not, "it is for compute capability 8.9 and newer");
  for (const char* arch : {"sm_89", "sm_100a", "sm_120"}) {
    i64 scales = 1;
    for (const ScaledMm* args : {&one, &blocks, &columns}) {
      const KernelPlan plan = plan_on(arch, *args);
      ASSERT_EQ(plan.why_not, "") << arch;
      EXPECT_EQ(plan.constants.at("scales"), scales++) << arch;
      EXPECT_EQ(plan.constants.at("promotes"), 1);
    }
    ScaledMm fast = one;
    fast.fast_sums = true;
    EXPECT_EQ(plan_on(arch, fast).constants.at("promotes"), 0);
    const KernelTarget target = cuda::kernel_target_of(arch);
    const std::vector<OpConfig> all =
        configs_of(get_op("scaled_mm"), bytes(blocks), {.gpu = true, .kernels = &target});
    EXPECT_EQ(plan_on(arch, blocks).constants.values(), all.front().values()) << "the default is the first";
    for (const OpConfig& config : all) {
      EXPECT_EQ(config.reorders(), !is_of_kernel(config)) << config.text();
      if (!is_of_kernel(config)) continue;
      const KernelPlan plan = get_op("scaled_mm").kernel(bytes(blocks), target, config);
      EXPECT_LE(plan.launches.at(0).shared_bytes, target.shared_bytes) << config.text();
      EXPECT_GE(config.at("stages"), 3) << config.text();
    }
  }
}

// Tiles have rows of one group, so that no CTAs share rows, and ends must be known to be multiples of a tile's.
TEST(WholeKernel, TakesGroupsOfWholeTiles) {
  constexpr i32 kGroups = 8, kRows = 2048, kInner = 768, kOuter = 1536;
  const auto matrix = [](i32 rows, i32 columns) {
    return Matrices{.data = dense(DType::kBf16, {rows, columns})};
  };
  GroupedMatmul rows{.a = matrix(kRows, kInner),
                     .b = {.data = dense(DType::kBf16, {kGroups, kOuter, kInner}), .transposed = true},
                     .ends = dense(DType::kI32, {kGroups}),
                     .y = dense(DType::kBf16, {kRows, kOuter}),
                     .unit = kGroupUnit};
  GroupedTerms terms{.a = {.data = dense(DType::kBf16, {kRows, kOuter}), .transposed = true},
                     .b = matrix(kRows, kInner),
                     .ends = rows.ends,
                     .y = dense(DType::kBf16, {kGroups, kOuter, kInner}),
                     .unit = kGroupUnit};
  const auto plan_of_groups = [](const char* op, const std::byte* args, const OpConfig& config) {
    return get_op(op).kernel(args, h100(), config);
  };
  for (const auto& [op, args] : {std::pair("grouped_matmul", bytes(rows)), {"grouped_terms", bytes(terms)}}) {
    const std::vector<OpConfig> all = configs_of(get_op(op), args, {.gpu = true, .kernels = &h100()});
    ASSERT_FALSE(all.empty()) << op;
    for (const OpConfig& config : all) {
      const KernelPlan plan = plan_of_groups(op, args, config);
      EXPECT_EQ(plan.why_not, "") << op;
      EXPECT_EQ(plan.launches.at(0).cluster, 1u) << op << ": " << config.text();
      EXPECT_FALSE(config.reorders()) << op << ": " << config.text();
    }
  }
  rows.unit = terms.unit = kGroupUnit / 2;
  EXPECT_NE(plan_of_groups("grouped_matmul", bytes(rows), {}).why_not, "");
  EXPECT_NE(plan_of_groups("grouped_terms", bytes(terms), {}).why_not, "");
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
          EXPECT_EQ(config.reorders(), !is_of_kernel(config) || config.at("split") > 1) << config.text();
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

// Parts of k are another order of a sum, which is chosen only where a caller allows that.
TEST(WholeKernel, SumsInPartsAreMarked) {
  for (const auto& [n, k] : {std::pair{1024, 4096}, {512, 2048}, {2048, 8192}, {256, 1024}, {256, 2120}})
    for (const i32 m : {1, 16, 200, 2048})
      for (const bool along_k : {false, true}) {
        std::set<i64> parts;
        for (const OpConfig& config : configs(product(m, n, k, DType::kBf16, false, along_k))) {
          const i64 split = is_of_kernel(config) ? config.at("split") : 1;
          EXPECT_TRUE(!is_of_kernel(config) || config.reorders() == (split > 1))
              << m << ", " << config.text();
          if (split > 1) parts.insert(split);
        }
        // No part is empty: 2,120 are 34 slabs, which eight parts of pairs do not share.
        const std::set<i64> wanted = k == 1024   ? std::set<i64>{}
                                     : k == 2120 ? std::set<i64>{2, 4}
                                                 : std::set<i64>{2, 4, 8};
        EXPECT_EQ(parts, wanted) << m << " x " << n << " x " << k
                                 << ": they are there for any number of rows";
      }
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
  EXPECT_LE(texts.size(), 96u);
}

TEST(WholeKernel, CompilesWithoutSpills) {
#ifdef HEDDLE_SANITIZED
  GTEST_SKIP() << "NVRTC, which no sanitizer sees into: left to builds without one";
#endif
  if (const std::string& why = cuda::why_no_compiler(); !why.empty()) GTEST_SKIP() << why;
  for (const auto& [type, n] : {std::pair{DType::kBf16, 2048}, {DType::kF16, 2048}, {DType::kF16, 256}}) {
    const bool rows = type == DType::kBf16;
    const Matmul args = product(2048, n, 2048, type, !rows, rows);
    cuda::CompileRequest request =
        cuda::kernel_request(get_op("matmul"), bytes(args), plan_of(args), "sm_90a");
    request.may_be_packaged = false;  // packages have no reports of ptxas
    const cuda::Compiled compiled = cuda::compile(request);
    ASSERT_EQ(compiled.kernels.size(), 1u);
    EXPECT_EQ(cuda::over_budget(compiled.kernels[0], {}), "");
    EXPECT_EQ(compiled.log.find("(C75"), std::string::npos) << compiled.log;
  }
  const OpSpec& op = get_op("scaled_mm");
  const ScaledMm codes = scaled(100, 256, 512, {100, 4}, {4, 256});
  for (const std::string arch : {"sm_89", "sm_90a", "sm_120"}) {
    const KernelTarget target = cuda::kernel_target_of(arch);
    for (const OpConfig& config : configs_of(op, bytes(codes), {.gpu = true, .kernels = &target})) {
      if (!is_of_kernel(config)) continue;
      cuda::CompileRequest request =
          cuda::kernel_request(op, bytes(codes), op.kernel(bytes(codes), target, config), arch);
      request.may_be_packaged = false;
      EXPECT_EQ(cuda::over_budget(cuda::compile(request).kernels.at(0), {}), "") << arch << config.text();
    }
  }
}

template <class Args>
Args attention(i32 rows, i32 keys, i32 dim, DType type = DType::kBf16) {
  Args args;
  args.q = dense(type, {2, rows, 4, dim});
  args.k = dense(type, {2, keys, 2, dim});
  args.v = dense(type, {2, keys, 2, dim});
  return args;
}

// The arguments as a call has them: checked, with addresses.
template <class Args>
KernelPlan attention_plan(const char* op, const Args& args, const KernelTarget& target = h100()) {
  CheckedCall call = check_call(get_op(op), bytes(args));
  return get_op(op).kernel(call.args.data(), target, {});
}

template <class Args>
std::string why_attention(const char* op, const Args& args) {
  return attention_plan(op, args).why_not;
}

TEST(WholeKernel, OfAttentionSaysWhatDoesNotFit) {
  const auto why = [](const FlashAttention& args) { return why_attention("flash_attention", args); };
  EXPECT_EQ(why(attention<FlashAttention>(33, 70, 128)), "");
  EXPECT_EQ(why(attention<FlashAttention>(1, 7, 40, DType::kF16)), "");
  EXPECT_EQ(why(attention<FlashAttention>(33, 70, 256)), "");
  EXPECT_EQ(why(attention<FlashAttention>(33, 70, 264)), "heads have 264 and 264 elements; at most 256");
  EXPECT_EQ(why(attention<FlashAttention>(33, 70, 36)),
            "q's dimension 2 has a stride of 72 bytes; must be a multiple of 16");
  EXPECT_EQ(why(attention<FlashAttention>(33, 70, 64, DType::kF32)),
            "q is f32; q, k, v and the result must all be bf16 or all f16");
  FlashAttention negative = attention<FlashAttention>(33, 70, 64);
  negative.scale = -1;
  EXPECT_EQ(why(negative), "scale is -1; must not be negative");
  // The stride of a dimension of one element says nothing.
  FlashAttention one = attention<FlashAttention>(33, 70, 64);
  one.k.size[2] = one.v.size[2] = 1, one.k.stride[2] = 3;
  EXPECT_EQ(why(one), "");
  EXPECT_NE(attention_plan("flash_attention", attention<FlashAttention>(33, 70, 64),
                           cuda::kernel_target_of("sm_80"))
                .why_not,
            "");
}

// Arguments with block lists for each head, whose blocks have `queries` and `keys`.
template <class Args>
Args with_lists(Args args, i32 queries, i32 keys) {
  const i32 rows = blocks_of(args.q.size[1], queries), columns = blocks_of(args.k.size[1], keys);
  args.block_q = queries, args.block_k = keys;
  args.kv_num_blocks = dense(DType::kI32, {1, 4, rows});
  args.kv_indices = dense(DType::kI32, {1, 4, rows, columns});
  if constexpr (requires { args.dy; }) {
    args.q_num_blocks = dense(DType::kI32, {1, 4, columns});
    args.q_indices = dense(DType::kI32, {1, 4, columns, rows});
    args.dy = args.q, args.lse = args.delta = dense(DType::kF32, {2, 4, args.q.size[1]});
  }
  return args;
}

TEST(WholeKernel, OfAttentionCutsListedBlocks) {
  const FlashAttention plain = attention<FlashAttention>(300, 700, 128);
  const auto why = [&](i32 queries, i32 keys) {
    return why_attention("flash_attention", with_lists(plain, queries, keys));
  };
  EXPECT_EQ(why(128, 128), "");
  EXPECT_EQ(why(256, 64), "");
  EXPECT_EQ(why(64, 128), "blocks have 64 queries and 128 keys; must be multiples of 128 and 64");
  // A block of the kernel has keys of one listed block.
  for (const i32 keys : {64, 128, 192, 256}) {
    const KernelPlan plan = attention_plan("flash_attention", with_lists(plain, 128, keys));
    EXPECT_EQ(keys % plan.constants.at("keys"), 0) << keys;
  }
  const FlashAttentionBackward backward = attention<FlashAttentionBackward>(300, 700, 128);
  const KernelPlan plan = attention_plan("flash_attention_backward", with_lists(backward, 64, 128));
  EXPECT_EQ(plan.why_not, "");
  EXPECT_EQ(plan.launches.size(), 4u);  // the first says in which order CTAs add to dq
  EXPECT_EQ(plan.launches[0].grid, 4u * 5);
  EXPECT_EQ(attention_plan("flash_attention_backward", with_lists(backward, 64, 64)).why_not,
            "blocks have 64 queries and 64 keys; must be multiples of 64 and 128");
}

// Both groups of a CTA have the same 64 keys of a wide head.
TEST(WholeKernel, OfAttentionHasGradientsOfWideHeads) {
  for (const auto& [dim, keys] : {std::pair{128, 128}, {136, 64}, {256, 64}}) {
    FlashAttentionBackward args = attention<FlashAttentionBackward>(300, 700, dim);
    args.dy = args.q, args.lse = args.delta = dense(DType::kF32, {2, 4, 300});
    const KernelPlan plan = attention_plan("flash_attention_backward", args);
    ASSERT_EQ(plan.why_not, "");
    EXPECT_EQ(plan.launches[1].grid, u32((700 + keys - 1) / keys * 2 * 4));
    EXPECT_LE(plan.launches[1].shared_bytes, h100().shared_bytes);
  }
  FlashAttentionBackward wider = attention<FlashAttentionBackward>(300, 700, 264);
  wider.dy = wider.q, wider.lse = wider.delta = dense(DType::kF32, {2, 4, 300});
  EXPECT_EQ(attention_plan("flash_attention_backward", wider).why_not,
            "heads have 264 and 264 elements; at most 256");
}

// Where keys are few, each CTA has some of the heads that share them, and others add up dk and dv.
TEST(WholeKernel, OfAttentionSplitsHeadsThatShareFewKeys) {
  const auto args_of = [](i32 length, i32 heads) {
    FlashAttentionBackward args = attention<FlashAttentionBackward>(length, length, 128);
    args.q = args.dy = dense(DType::kBf16, {1, length, heads, 128});
    args.k = args.v = dense(DType::kBf16, {1, length, 2, 128});
    args.lse = args.delta = dense(DType::kF32, {1, heads, length});
    return args;
  };
  const auto ctas = [&](const FlashAttentionBackward& args) {
    const KernelPlan plan = attention_plan("flash_attention_backward", args);
    EXPECT_EQ(plan.why_not, "");
    const u32 steps = u32((args.q.size[1] + 63) / 64 * args.q.size[2]),
              tiles = u32((args.k.size[1] + 127) / 128 * 2);
    const u32 main = plan.launches[1].grid;
    EXPECT_EQ(plan.launches[2].grid, steps + (main > tiles ? 8 * tiles : 0));
    return main;
  };
  EXPECT_EQ(ctas(args_of(1000, 16)), 16u * 8);
  EXPECT_EQ(ctas(args_of(1000, 2)), 16u);  // no heads share keys
  EXPECT_EQ(ctas(args_of(128, 8)), 2u * 4);
  EXPECT_EQ(ctas(args_of(128 * 66, 4)), 132u);  // a whole wave
  FlashAttentionBackward documents = args_of(1000, 16);
  documents.cu_seqlens_q = documents.cu_seqlens_k = dense(DType::kI32, {2});
  const KernelPlan plan = attention_plan("flash_attention_backward", documents);
  EXPECT_EQ(plan.launches[1].grid, u32(1000 / 128 + 3) * 2);
}

template <class Args>
std::set<std::string> attention_codes(const char* op) {
  std::mt19937 random(7);
  std::set<std::string> names;
  for (int i = 0; i < 300; ++i) {
    Args args = attention<Args>(i32(1 + random() % 5000), i32(1 + random() % 5000), 128);
    if constexpr (std::is_same_v<Args, FlashAttentionBackward>) {
      args.dy = dense(DType::kBf16, {2, args.q.size[1], 4, 128});
      args.lse = args.delta = dense(DType::kF32, {2, 4, args.q.size[1]});
    }
    args.causal = random() % 2, args.window_left = random() % 2 ? -1 : i32(random() % 300);
    CheckedCall call = check_call(get_op(op), bytes(args));
    const KernelPlan plan = get_op(op).kernel(call.args.data(), h100(), {});
    EXPECT_EQ(plan.why_not, "");
    for (const KernelLaunch& launch : plan.launches) EXPECT_LE(launch.shared_bytes, h100().shared_bytes);
    names.insert(cuda::code_name(cuda::kernel_request(get_op(op), call.args.data(), plan, "sm_90a")));
  }
  return names;
}

// Lengths, masks and strides are read when a kernel runs.
TEST(WholeKernel, OfAttentionHasOneCodeForAllSizesAndMasks) {
  EXPECT_EQ(attention_codes<FlashAttention>("flash_attention").size(), 1u);
  EXPECT_EQ(attention_codes<FlashAttentionBackward>("flash_attention_backward").size(), 1u);
}

}  // namespace
}  // namespace heddle
