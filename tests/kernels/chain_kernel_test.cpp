// Whole kernels of chains in programs of many rows (OpSpec::chain_kernel): which calls they take, and that they compile. Neither
// weights nor a GPU is needed; op_harness_test.cpp runs them.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "heddle/backend/cuda/compiler/nvrtc.h"
#include "heddle/backend/cuda/program/body_check.h"
#include "heddle/backend/cuda/program/kernel_source.h"
#include "heddle/backend/cuda/program/launches_code.h"
#include "heddle/engine/planner.h"
#include "heddle/ir/cases.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/row_classes.h"
#include "heddle/ir/rules.h"
#include "heddle/ops/attention/attention.h"
#include "heddle/ops/linear/linear.h"
#include "heddle/trace/timeline.h"
#include "tests/support/shapes.h"

namespace heddle {
namespace {

Linear many(i32 m, i32 n, i32 k, DType type = DType::kBf16) {
  Linear args{.x = dense(type, {m, k}), .w = {.data = dense(type, {n, k})}, .y = dense(type, {m, n})};
  args.w.panel_rows = 2, args.w.interleave = 8;
  args.x.buffer = 0, args.w.data.buffer = 1, args.y.buffer = 2;
  return args;
}

KernelPlan plan_of(const Linear& args, i64 fold = 1, const char* arch = "sm_90a") {
  return get_op("linear").chain_kernel(reinterpret_cast<const std::byte*>(&args),
                                       cuda::kernel_target_of(arch), {{"fold", fold}});
}

TEST(ChainKernel, OfLinearSaysWhatDoesNotFit) {
  const auto why = [](const Linear& args, i64 fold = 1) { return plan_of(args, fold).why_not; };
  EXPECT_EQ(why(many(512, 2048, 2048)), "");
  EXPECT_EQ(why(many(65, 8, 32, DType::kF16)), "");
  EXPECT_EQ(why(many(9, 2048, 2048)), "");
  EXPECT_EQ(why(many(8, 2048, 2048)), "it has 8 rows; must be more than 8");
  EXPECT_EQ(why(many(512, 2048, 2048, DType::kF32)), "x is f32 and w is f32; must both be bf16 or f16");
  EXPECT_EQ(why(many(512, 2048, 2056)), "w has 2056 columns; must be a multiple of 32");
  EXPECT_EQ(why(many(512, 2048, 2048), 2),
            "2048 rows of w make 2048 columns of y; must be as many, or twice as many");
  EXPECT_EQ(why(many(512, 60, 64)),
            "y's rows begin at byte 0 and are 120 bytes apart; must be multiples of 16");
  Linear single = many(512, 2048, 2048);
  single.w.panel_rows = 16, single.w.interleave = 2;
  EXPECT_EQ(why(single), "w is not one matrix in panels of two rows");
  Linear codes = many(512, 2048, 2048);
  codes.w.coding = {Code::kF8E4M3, 128}, codes.w.interleave = 16;
  EXPECT_EQ(why(codes), "");
  codes.w.coding = {Code::kI4, 16}, codes.w.interleave = 32;  // groups that the ring does not take
  EXPECT_EQ(why(codes), "w is not one matrix in panels of two rows");
  Linear part = many(512, 60, 64);  // a wider tensor has its rows
  part.y.stride[0] = 64;
  EXPECT_EQ(why(part), "y's rows have 120 bytes; must be a multiple of 16");
  EXPECT_NE(plan_of(many(512, 2048, 2048), 1, "sm_80").why_not, "");
  EXPECT_NE(plan_of(many(512, 2048, 2048), 1, "sm_100a").why_not, "");
}

Attention prompt(i32 rows, i32 heads, i32 dim, i32 page_size = 64) {
  const StepExample step{{{0, rows}}, page_size};
  Attention args{.step = step.host(), .state = step.state(), .q = input(DType::kBf16, {rows, heads * dim})};
  args.k = args.v = input(DType::kBf16, {rows, dim});
  args.keys = args.values = input(DType::kBf16, {step.pages(), 1, page_size, dim});
  args.heads = heads, args.kv_heads = 1, args.block_heads = heads;
  args.block_rows = 32, args.max_blocks = rows / 32 + 1;
  get_op("attention").infer(reinterpret_cast<std::byte*>(&args));
  return args;
}

KernelPlan plan_of(const Attention& args, const char* arch = "sm_90a") {
  return get_op("attention")
      .chain_kernel(reinterpret_cast<const std::byte*>(&args), cuda::kernel_target_of(arch), {});
}

TEST(ChainKernel, OfAttentionSaysWhatDoesNotFit) {
  const auto why = [](const Attention& args) { return plan_of(args).why_not; };
  EXPECT_EQ(why(prompt(65, 1, 64)), "");
  EXPECT_EQ(why(prompt(64, 8, 64)), "it has 64 rows; must be more than 64");
  EXPECT_EQ(why(prompt(512, 8, 96)),
            "keys and values have 96 and 96 elements; must both have 64, 128 or 256");
  EXPECT_EQ(why(prompt(512, 8, 64, 24)), "pages have 24 positions; must be 8, 16, 32 or a multiple of 64");
  Attention parts = prompt(512, 8, 64);
  parts.max_splits = 2;
  EXPECT_EQ(why(parts), "positions are cut into 2 parts; must be one");
  Attention mixed = prompt(512, 8, 64);
  mixed.keys.dtype = DType::kF16;
  EXPECT_EQ(why(mixed), "keys is f16; all must be bf16 or all f16");
  Attention biased = prompt(512, 8, 64);
  biased.bias = input(DType::kF32, {8, 1024});
  EXPECT_EQ(why(biased), "scores have a bias");
  EXPECT_NE(plan_of(prompt(512, 8, 64), "sm_80").why_not, "");
}

TEST(ChainKernel, OfAttentionTakesWhatADeviceHas) {
  const KernelTarget target = cuda::kernel_target_of("sm_90a");
  for (const i32 rows : {65, 512, 2048})
    for (const i32 heads : {1, 32})
      for (const i32 dim : {64, 128, 256}) {
        const KernelPlan plan = plan_of(prompt(rows, heads, dim));
        ASSERT_EQ(plan.why_not, "");
        EXPECT_LE(plan.launches.at(0).shared_bytes, target.shared_bytes) << plan.constants.text();
        EXPECT_LE(i32(plan.launches.at(0).grid), target.multiprocessors);
        EXPECT_GE(plan.constants.at("stages"), dim == 256 ? 3 : 4) << plan.constants.text();
      }
}

TEST(ChainKernel, OfLinearTakesWhatADeviceHas) {
  const KernelTarget target = cuda::kernel_target_of("sm_90a");
  for (const i32 m : {9, 64, 65, 512, 2048})
    for (const i32 n : {8, 2048, 3072, 16384})
      for (const DType out : {DType::kBf16, DType::kF32}) {
        Linear args = many(m, n, 2048);
        args.y = dense(out, {m, n});
        const KernelPlan plan = plan_of(args);
        ASSERT_EQ(plan.why_not, "");
        const KernelLaunch& launch = plan.launches.at(0);
        EXPECT_LE(launch.shared_bytes, target.shared_bytes) << plan.constants.text();
        EXPECT_LE(i32(launch.grid), target.multiprocessors);
        EXPECT_GE(plan.constants.at("stages"), 3) << plan.constants.text();
      }
}

// Few rows have clusters that share a sum, as the weight says, whatever the rows and the device.
TEST(ChainKernel, OfLinearCutsLongSumsOfFewRows) {
  const auto parts_of = [](i32 m, i32 n, i32 k) {
    const KernelPlan plan = plan_of(many(m, n, k));
    const KernelLaunch& launch = plan.launches.at(0);
    EXPECT_EQ(plan.constants.at("split"), i64(launch.cluster));
    EXPECT_EQ(launch.grid % launch.cluster, 0u);
    return launch.cluster;
  };
  for (const i32 m : {9, 16, 40, 64}) {
    EXPECT_EQ(parts_of(m, 2048, 8192), 4u);
    EXPECT_EQ(parts_of(m, 6144, 4096), 2u);
    EXPECT_EQ(parts_of(m, 16384, 2048), 1u);
    EXPECT_EQ(parts_of(m, 256, 64), 1u) << "one slab";
    EXPECT_EQ(parts_of(m, 256, 320), 2u) << "five slabs: four parts would leave one empty";
  }
  EXPECT_EQ(parts_of(65, 2048, 8192), 1u);
  KernelTarget small = cuda::kernel_target_of("sm_90a");
  small.multiprocessors = 3;
  const Linear args = many(16, 2048, 8192);
  const KernelPlan plan = get_op("linear").chain_kernel(reinterpret_cast<const std::byte*>(&args), small, {});
  EXPECT_EQ(plan.launches.at(0).grid, 4u) << "a cluster goes from tile to tile";
}

// A model of one layer, in steps of `rows` rows.
Program program_of(std::string config, i32 rows, bool all_logits = false) {
  const std::string layers = "\"num_hidden_layers\": ";
  const size_t at = config.find(layers) + layers.size();
  config.replace(at, config.find(',', at) - at, "1");
  const Planner planner(std::make_shared<Shapes>(config.c_str()), gpu_target(132),
                        {.pages_per_sequence = 128, .num_pages = 128, .all_logits = all_logits}, {});
  return planner.program(rows, 1);
}

cuda::LaunchesCode code_of(const Program& program, bool tensor_maps = true) {
  return cuda::launches_code(program, "sm_90a", tensor_maps, Knowledge::kSizes);
}

TEST(ChainKernel, TakesTheProductsOfAPrompt) {
  for (const auto& [config, rows] :
       {std::pair(kLlama1B, 512), {kLlama1B, 64}, {kLlama8B, 512}, {kQwen8B, 512}, {kGemma2B, 512}}) {
    const Program program = program_of(config, rows);
    const cuda::LaunchesCode code = code_of(program);
    size_t whole = 0;
    for (size_t c = 0; c < program.calls.size(); ++c) {
      const Opcode& opcode = program.opcodes[program.calls[c].opcode];
      const std::string& op = opcode.ops[opcode.main];
      const KernelPlan& plan = code.calls[c].plan;
      const bool is_product = op == "linear" && program.calls[c].live == LiveRows::kRows;
      EXPECT_EQ(!plan.launches.empty(), is_product || (op == "attention" && rows > kManyStepRows))
          << opcode.text() << ": " << plan.why_not;
      whole += is_product;
    }
    EXPECT_EQ(whole, 4u) << "QKV, O, gate and up, down";
    for (const cuda::CallCode& call : code_of(program, false).calls) EXPECT_TRUE(call.plan.launches.empty());
  }
}

TEST(ChainKernel, TakesTheHeadWhereLogitsOfAllRowsAreWanted) {
  for (const char* config : {kLlama1B, kGemma2B}) {
    const Program program = program_of(config, 512, true);
    const cuda::LaunchesCode code = code_of(program);
    size_t heads = 0;
    for (size_t c = 0; c < program.calls.size(); ++c) {
      const Opcode& opcode = program.opcodes[program.calls[c].opcode];
      if (opcode.ops[opcode.main] != "linear" || program.calls[c].live != LiveRows::kWanted) continue;
      EXPECT_FALSE(code.calls[c].plan.launches.empty())
          << opcode.text() << ": " << code.calls[c].plan.why_not;
      ++heads;
    }
    EXPECT_EQ(heads, 1u);
  }
}

TEST(ChainKernel, IsSaidWithItsReasons) {
  const Program program = program_of(kLlama1B, 512);
  const std::vector<std::string> bodies = cuda::bodies_of(program, code_of(program).calls);
  EXPECT_EQ(get_executor("launches").bodies(program, "sm_90a"), bodies);
  const std::vector<std::string> lines = body_lines(make_timeline(program, {}, {.bodies = bodies}));
  const auto has = [&](const char* text) {
    return std::ranges::any_of(lines, [&](const std::string& line) { return line.find(text) != line.npos; });
  };
  EXPECT_TRUE(
      has("calls of linear add: linear_kernel.sm90 (fold=1,rows=64,split=1,stages=8), 128 CTAs of "
          "384 threads"));
  EXPECT_TRUE(has("1 call of rms_norm linear: tiles; no whole kernel because rms_norm is its prologue"));
  EXPECT_TRUE(
      has("1 call of attention: attention_kernel.sm90 (dim=64,groups=2,modifies_scores=0,stages=6), 128 CTAs "
          "of 384 "
          "threads"));
  EXPECT_EQ(lines.size(), 5u);
}

// The requests of attention alone, unless `all`.
std::set<size_t> requests_of_whole_kernels(const Program& program, const cuda::LaunchesCode& code, bool all) {
  std::set<size_t> requests;
  for (size_t c = 0; c < program.calls.size(); ++c) {
    const Opcode& opcode = program.opcodes[program.calls[c].opcode];
    if (!code.calls[c].plan.launches.empty() && (all || opcode.ops[opcode.main] == "attention"))
      requests.insert(code.calls[c].request);
  }
  return requests;
}

TEST(ChainKernel, CompilesWithoutSpills) {
#ifdef HEDDLE_SANITIZED
  GTEST_SKIP() << "NVRTC, which no sanitizer sees into: left to builds without one";
#endif
  if (const std::string& why = cuda::why_no_compiler(); !why.empty()) GTEST_SKIP() << why;
  std::vector<cuda::CompileRequest> requests;
  for (const auto& [config, rows] : {std::pair(kLlama1B, 512),
                                     {kLlama1B, 64},
                                     {kLlama1B, 2048},
                                     {kLlama8B, 512},
                                     {kLlama8B, 2048},
                                     {kGemma2B, 512}}) {
    const Program program = program_of(config, rows);
    const cuda::LaunchesCode code = code_of(program);
    for (const size_t request : requests_of_whole_kernels(program, code, config == kLlama1B && rows <= 512))
      requests.push_back(code.requests[request]);
  }
  for (cuda::CompileRequest& request : requests) {
    request.may_be_packaged = false;  // packages have no reports of ptxas
    const cuda::Compiled compiled = cuda::compile(request);
    ASSERT_EQ(compiled.kernels.size(), 1u);
    EXPECT_EQ(cuda::over_budget(compiled.kernels[0], {.stack_bytes = 32, .spill_bytes = 64}), "")
        << request.name;
    EXPECT_EQ(compiled.log.find("(C75"), std::string::npos) << compiled.log;
  }
}

}  // namespace
}  // namespace heddle
