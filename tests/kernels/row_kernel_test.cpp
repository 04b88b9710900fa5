// Whole kernels of rows and of single elements (kit/rows/row_kernel.h): what fits, and what the default follows. No GPU is needed;
// op_call_test.cpp runs them, also on the emulated GPU.
#include <set>

#include <gtest/gtest.h>

#include "heddle/backend/cuda/compiler/nvrtc.h"
#include "heddle/backend/cuda/program/body_check.h"
#include "heddle/backend/cuda/program/kernel_source.h"
#include "heddle/backend/cuda/program/requests.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/rules.h"
#include "heddle/ops/copy/copy.h"
#include "heddle/ops/head_norm/head_norm.h"
#include "heddle/ops/head_norm/head_norm_backward.h"
#include "heddle/ops/layer_norm/layer_norm_backward.h"
#include "heddle/ops/layer_norm/layer_norm_residual.h"
#include "heddle/ops/reduce/column_sum.h"
#include "heddle/ops/reduce/reduce_dim.h"
#include "heddle/ops/reduce/reduce_dim_backward.h"
#include "heddle/ops/rms_norm/rms_norm_backward.h"
#include "heddle/ops/rope/rope_rows.h"
#include "heddle/ops/softmax/softmax.h"
#include "heddle/ops/softmax/softmax_backward.h"
#include "heddle/ops/transpose/transpose.h"
#include "tests/kernels/h100.h"

namespace heddle {
namespace {

template <class Args>
std::vector<std::byte> inferred(const char* op, const Args& args) {
  std::vector<std::byte> bytes(sizeof args);
  new (bytes.data()) Args(args);
  get_op(op).infer(bytes.data());
  u32 buffer = 0;  // a tensor exists by its buffer
  for (const Field& field : get_op(op).fields)
    if (field.is_tensor() && field.tensor(bytes.data()).rank > 0)
      field.tensor(bytes.data()).buffer = buffer++;
  return bytes;
}
KernelPlan plan_of(const char* op, const std::vector<std::byte>& args, const KernelTarget& target = h100()) {
  return get_op(op).kernel(args.data(), target, {});
}

std::vector<std::byte> softmax(i32 rows, i32 columns, DType type = DType::kBf16, i64 pad = 0) {
  Tensor x = dense(type, {rows, columns});
  x.stride[0] += pad;
  return inferred("softmax", Softmax{.x = x});
}
std::vector<std::byte> norm(i32 rows, i32 columns, DType type = DType::kBf16) {
  return inferred("layer_norm_residual", LayerNormResidual{.x = dense(type, {rows, columns}),
                                                           .residual = dense(type, {rows, columns}),
                                                           .weight = dense(type, {columns}),
                                                           .bias = dense(type, {columns})});
}

std::vector<std::byte> norm_backward(i32 rows, i32 columns, i64 pad = 0) {
  Tensor x = dense(DType::kBf16, {rows, columns});
  x.stride[0] += pad;
  return inferred("layer_norm_backward",
                  LayerNormBackward{.x = x, .weight = dense(DType::kBf16, {columns}), .dy = x});
}
std::vector<std::byte> transpose(const Tensor& x) {
  return inferred("transpose", Transpose{.x = x});
}

TEST(RowKernel, SaysWhatDoesNotFit) {
  EXPECT_EQ(plan_of("softmax", softmax(3, 64)).why_not, "");
  EXPECT_EQ(plan_of("layer_norm_backward", norm_backward(3, 64)).why_not, "");
  const auto copy = [](const Tensor& x) { return plan_of("copy", inferred("copy", Copy{.x = x})).why_not; };
  EXPECT_EQ(copy(dense(DType::kBf16, {3, 61})), "");
  Tensor apart = dense(DType::kBf16, {3, 61});
  apart.stride[0] = 64;
  EXPECT_EQ(copy(apart), "a row has 61 elements, not a multiple of 8");
  apart = dense(DType::kBf16, {3, 64});
  apart.stride[0] = 68;
  EXPECT_EQ(copy(apart), "rows of bf16 [3, 64] begin 68 elements apart, not at words of 16 bytes");
  EXPECT_EQ(plan_of("layer_norm_backward", norm_backward(3, 131081)).why_not,
            "a row has 131081 elements, which registers do not hold");
  EXPECT_EQ(plan_of("layer_norm_residual", norm(3, 40000), {.arch = 80}).why_not,
            "a row has 40000 elements, which registers do not hold");
  const Transpose rounding{.x = dense(DType::kF32, {8, 8}), .y = dense(DType::kBf16, {8, 8})};
  EXPECT_EQ(plan_of("transpose", inferred("transpose", rounding)).why_not,
            "x is f32 and y bf16; must be of one dtype");
  RopeRows rope{.x = dense(DType::kBf16, {2, 80}), .table = dense(DType::kF32, {2, 24})};
  rope.head_dim = 40, rope.rotary_dim = 24, rope.heads = 2, rope.interleaved = 0;
  EXPECT_EQ(plan_of("rope_rows", inferred("rope_rows", rope)).why_not,
            "heads of 40 elements, of which 24 turn, are not cut into multiples of 8 and 16");
  EXPECT_NE(plan_of("softmax", softmax(3, 64), {.arch = 75}).why_not, "");
}

TEST(RowKernel, RowsEndToEndAreOne) {
  const auto plan = [](const Tensor& x) {
    const KernelPlan made = plan_of("copy", inferred("copy", Copy{.x = x}));
    return std::pair(made.launches.at(0).grid, made.constants.contains("flat"));
  };
  EXPECT_EQ(plan(dense(DType::kBf16, {3, 1})), std::pair(1u, true));
  EXPECT_EQ(plan(dense(DType::kBf16, {1024, 4})), std::pair(4u, true));  // a CTA has 128 times 8 elements
  EXPECT_EQ(plan(dense(DType::kBf16, {1025, 4})), std::pair(5u, true));
  Tensor apart = dense(DType::kBf16, {3, 1032});
  apart.stride[0] = 2000;
  EXPECT_EQ(plan(apart), std::pair(6u, false));
}

// A package is for all cards of an architecture, and so has what each of them takes by default.
TEST(RowKernel, ArePackagedForFastAndOtherMemory) {
  const auto threads = [](const std::vector<std::byte>& args) {
    std::vector<i64> all;
    for (const cuda::KernelRequest& request :
         cuda::kernel_requests(get_op("copy"), args.data(), "sm_90a", false))
      all.push_back(request.plan.constants.at("threads"));
    return all;
  };
  const auto copy = [](DType type) { return inferred("copy", Copy{.x = dense(type, {4096, 4096})}); };
  EXPECT_EQ(threads(copy(DType::kBf16)), (std::vector<i64>{256, 128}));
  EXPECT_EQ(threads(copy(DType::kF32)), std::vector<i64>{256}) << "the same for both: once";
}

TEST(RowKernel, TakeTwoRowsAtATimeWhereMemoryIsFast) {
  KernelTarget h200 = h100();
  h200.fast_memory = true;
  const auto rows = [](i32 columns, DType type, const KernelTarget& target) {
    const RmsNormBackward args{.x = dense(type, {32768, columns}),
                               .weight = dense(type, {columns}),
                               .dy = dense(type, {32768, columns})};
    return plan_of("rms_norm_backward", inferred("rms_norm_backward", args), target).constants.at("rows");
  };
  EXPECT_EQ(rows(4096, DType::kBf16, h200), 2);
  EXPECT_EQ(rows(1024, DType::kF16, h200), 2);
  EXPECT_EQ(rows(8192, DType::kBf16, h200), 1);
  EXPECT_EQ(rows(256, DType::kBf16, h200), 1) << "teams of a CTA have a row each";
  EXPECT_EQ(rows(4096, DType::kF32, h200), 1);
  EXPECT_EQ(rows(4096, DType::kBf16, h100()), 1);
}

TEST(RowKernel, CtasAreSmallWhereMemoryIsFast) {
  KernelTarget h200 = h100();
  h200.fast_memory = true;
  const auto threads = [&](const char* op, const auto& args) {
    const std::vector<std::byte> made = inferred(op, args);
    return std::pair(plan_of(op, made).launches.at(0).threads,
                     plan_of(op, made, h200).launches.at(0).threads);
  };
  const auto norm = [](DType type) {
    const Tensor x = dense(type, {4096, 4096});
    return RmsNormBackward{.x = x, .weight = dense(type, {4096}), .dy = x};
  };
  EXPECT_EQ(threads("copy", Copy{.x = dense(DType::kBf16, {4096, 4096})}), std::pair(256u, 128u));
  EXPECT_EQ(threads("copy", Copy{.x = dense(DType::kF32, {4096, 4096})}), std::pair(256u, 256u));
  EXPECT_EQ(threads("rms_norm_backward", norm(DType::kBf16)), std::pair(512u, 256u));
  EXPECT_EQ(threads("rms_norm_backward", norm(DType::kF32)), std::pair(512u, 512u));
  EXPECT_EQ(threads("reduce_dim", ReduceDim{.x = dense(DType::kBf16, {8, 4096, 4096})}),
            std::pair(256u, 128u));
}

// A thread has as many words as others have, so that none waits with empty ones.
TEST(RowKernel, ThreadsFollowFromTheWidth) {
  KernelTarget h200 = h100();
  h200.fast_memory = true;
  const auto launch = [&](const char* op, const auto& args) {
    return plan_of(op, inferred(op, args), h200).launches.at(0);
  };
  const auto given = [](DType type, i32 columns) {
    const Tensor x = dense(type, {24576, columns});
    return RmsNormBackward{.x = x, .weight = dense(type, {columns}), .dy = x};
  };
  EXPECT_EQ(launch("rms_norm_backward", given(DType::kBf16, 5120)).threads, 320u);
  EXPECT_EQ(launch("rms_norm_backward", given(DType::kBf16, 6144)).threads, 384u);
  const auto centred = [&](DType type, i32 columns) {
    const RmsNormBackward args = given(type, columns);
    return launch("layer_norm_backward",
                  LayerNormBackward{.x = args.x, .weight = args.weight, .dy = args.dy});
  };
  const KernelLaunch shared = centred(DType::kBf16, 5120);
  EXPECT_EQ(shared.threads, 224u);
  EXPECT_GT(shared.grid, 2 * 128u) << "a multiprocessor has two CTAs";
  EXPECT_EQ(centred(DType::kBf16, 3000).threads, 128u);
  EXPECT_EQ(centred(DType::kF32, 5120).threads, 512u);
  EXPECT_LE(centred(DType::kF32, 5120).grid, 132u);
}

TEST(RowKernel, SeveralNarrowRowsShareAWarp) {
  const auto threads_of = [](i32 columns) {
    const KernelPlan plan = plan_of("softmax", softmax(100, columns));
    EXPECT_EQ(plan.launches.at(0).grid,
              u32((100 * plan.constants.at("row_threads") + plan.launches.at(0).threads - 1) /
                  plan.launches.at(0).threads));
    return plan.constants.at("row_threads");
  };
  EXPECT_EQ(threads_of(8), 8);
  EXPECT_EQ(threads_of(64), 8);
  EXPECT_EQ(threads_of(72), 16);
  EXPECT_EQ(threads_of(128), 16);
  EXPECT_EQ(threads_of(136), 32);
}

// Teams of a CTA take turns with the rows of a part.
TEST(RowKernel, GradientsOfNarrowRowsHaveTeams) {
  const auto team_of = [](i32 columns) {
    const auto args = norm_backward(100000, columns);
    const KernelPlan plan = plan_of("layer_norm_backward", args);
    EXPECT_EQ(i32(plan.launches.at(0).grid), as<LayerNormBackward>(args.data()).parts());
    return std::pair(plan.constants.at("row_threads"), plan.constants.at("threads"));
  };
  EXPECT_EQ(team_of(64), std::pair(i64(8), i64(64)));
  EXPECT_EQ(team_of(61), std::pair(i64(8), i64(64)));
  EXPECT_EQ(team_of(128), std::pair(i64(16), i64(64)));
  EXPECT_EQ(team_of(512), std::pair(i64(32), i64(64)));
  EXPECT_EQ(team_of(1024), std::pair(i64(128), i64(128)));
}

// A row of 4 heads and 2 pieces as wide has 6 rows of its own; a part of its rows is one of each piece.
TEST(RowKernel, HeadsArePiecesOfRows) {
  const auto plans = [](i32 head_dim, i32 columns) {
    const Tensor x = dense(DType::kBf16, {100, columns}), weight = dense(DType::kBf16, {4 * head_dim});
    HeadNorm norm{.x = x, .weight = weight};
    norm.head_dim = head_dim, norm.heads = 4;
    HeadNormBackward backward{.x = x, .weight = weight, .dy = x};
    backward.head_dim = head_dim, backward.heads = 4, backward.part_rows = 10;
    return std::pair(plan_of("head_norm", inferred("head_norm", norm)),
                     plan_of("head_norm_backward", inferred("head_norm_backward", backward)));
  };
  const auto& [forward, backward] = plans(128, 6 * 128);
  EXPECT_EQ(forward.constants.at("row_threads"), 16);
  EXPECT_EQ(forward.launches.at(0).grid, 100u * 6 * 16 / 128);
  EXPECT_EQ(backward.constants.at("row_threads"), 16);
  EXPECT_EQ(backward.launches.at(0).grid, 10u * 6);
  EXPECT_FALSE(forward.constants.contains("share"));
  EXPECT_TRUE(plans(33, 200).first.constants.contains("share"));
  EXPECT_TRUE(plans(33, 200).second.constants.contains("share"));
}

// Rows that begin or end inside of a word of 16 bytes have a kernel too.
TEST(RowKernel, RowsNeedNotBeWords) {
  constexpr i64 kElements = 1, kSplitVec8 = 2, kShifted = 3;
  const auto share = [](const std::vector<std::byte>& args) {
    const KernelPlan plan = plan_of("softmax", args);
    EXPECT_EQ(plan.why_not, "");
    return plan.constants.contains("share") ? i64(plan.constants.at("share")) : 0;
  };
  EXPECT_EQ(share(softmax(3, 64, DType::kBf16)), 0);
  EXPECT_EQ(share(softmax(3, 64, DType::kF32)), kSplitVec8) << "an eight of f32 would be two words";
  EXPECT_EQ(share(softmax(3, 61)), kElements);
  EXPECT_EQ(share(softmax(3, 9001)), kShifted) << "a CTA's threads hold more of them so";
  EXPECT_EQ(share(softmax(3, 61, DType::kF32)), kElements);
  EXPECT_EQ(share(softmax(3, 300, DType::kBf16)), kSplitVec8) << "words of 8 bytes";
  EXPECT_EQ(share(softmax(3, 64, DType::kBf16, 4)), kSplitVec8);
  EXPECT_EQ(share(softmax(3, 64, DType::kBf16, 2)), kElements);
  EXPECT_EQ(share(softmax(3, 64, DType::kF32, 4)), kSplitVec8);
  EXPECT_EQ(share(softmax(3, 131072, DType::kF32)), 0) << "a cluster has eights";
  const KernelPlan plan = plan_of("softmax", softmax(3, 50257));
  EXPECT_EQ(plan.launches.at(0).name, "LongKernel");
  EXPECT_EQ(plan.note, "a row is read twice, because it is no words of 16 bytes");

  const auto copy = [](const Tensor& x) { return plan_of("copy", inferred("copy", Copy{.x = x})).why_not; };
  EXPECT_EQ(copy(dense(DType::kBf16, {8, 61})), "") << "rows end to end are one row";

  const auto kernel_of = [](const Tensor& x) {
    return plan_of("transpose", transpose(x)).launches.at(0).name;
  };
  EXPECT_EQ(kernel_of(dense(DType::kBf16, {8, 64})), "Kernel");
  EXPECT_EQ(kernel_of(dense(DType::kBf16, {7, 64})), "ElementKernel");
  EXPECT_EQ(kernel_of(dense(DType::kF32, {8, 64})), "ElementKernel");
}

// Rows that are no words of 16 bytes and that no CTA holds: of GPT-2's vocabulary, and of others.
TEST(RowKernel, AClusterHasRowsThatBeginAnywhere) {
  for (const DType type : {DType::kBf16, DType::kF32})
    for (const i32 columns : {20001, 50257}) {
      const KernelPlan plan = plan_of("layer_norm_residual", norm(3, columns, type));
      EXPECT_EQ(plan.why_not, "") << columns;
      EXPECT_GT(plan.launches.at(0).cluster, 1u) << columns;
    }
  for (const i32 columns : {11045, 50257}) {
    const KernelPlan plan = plan_of("layer_norm_backward", norm_backward(300, columns));
    EXPECT_EQ(plan.why_not, "") << columns;
    EXPECT_EQ(plan.launches.at(0).cluster, u32(ceil_div(columns, 8192))) << columns;
  }
}

// A prompt may be cut anywhere: the order of a sum must not follow from the number of rows.
TEST(RowKernel, TheOrderOfSumsFollowsColumnsAlone) {
  for (const i32 columns : {8, 61, 64, 256, 1000, 3001, 1024, 4096, 5120, 8192, 16384, 32768, 65536}) {
    std::set<std::string> of_softmax, of_norm;
    for (const i32 rows : {1, 2, 16, 100, 4096, 100000}) {
      const KernelPlan plan = plan_of("softmax", softmax(rows, columns));
      of_softmax.insert(plan.launches.at(0).name + plan.constants.text());
      if (columns <= 32768)
        of_norm.insert(plan_of("layer_norm_residual", norm(rows, columns)).constants.text());
    }
    EXPECT_EQ(of_softmax.size(), 1u) << columns;
    EXPECT_LE(of_norm.size(), 1u) << columns;
  }
}

// A cluster has a row in registers, those of one CTA's if they hold it easily, or in its shared memory.
TEST(RowKernel, AClusterHoldsALongRow) {
  const auto how = [](const KernelPlan& plan) {
    const KernelLaunch& launch = plan.launches.at(0);
    return launch.name + " " + std::to_string(launch.cluster);
  };
  const auto of_columns = [&](i32 columns, DType type = DType::kBf16) {
    return how(plan_of("softmax", softmax(3, columns, type)));
  };
  EXPECT_EQ(of_columns(16384), "Kernel 1");
  EXPECT_EQ(of_columns(32768), "Kernel 4");
  EXPECT_EQ(of_columns(40000), "Kernel 5");
  EXPECT_EQ(of_columns(1 << 16), "Kernel 8");
  EXPECT_EQ(of_columns(1 << 17), "Kernel 8") << "more than eight CTAs of 256 threads have";
  EXPECT_EQ(of_columns(1 << 17, DType::kF32), "ClusterKernel 8");
  EXPECT_EQ(of_columns(1 << 20), "ClusterKernel 16");
  const auto of_norm = [&](i32 columns) { return plan_of("layer_norm_residual", norm(3, columns)); };
  EXPECT_EQ(how(of_norm(1 << 17)), "Kernel 8");
  EXPECT_NE(of_norm(1 << 20).why_not, "");
  const auto backward = [&](i32 columns) {
    const Tensor y = dense(DType::kBf16, {3, columns});
    return how(plan_of("softmax_backward", inferred("softmax_backward", SoftmaxBackward{.y = y, .dy = y})));
  };
  EXPECT_EQ(backward(1 << 17), "ClusterKernel 8");
  EXPECT_EQ(backward(1 << 20), "ClusterKernel 16");

  const KernelPlan plan = plan_of("softmax", softmax(3, 1 << 17, DType::kF32));
  EXPECT_EQ(plan.launches.at(0).grid, 24u);
  EXPECT_EQ(plan.launches.at(0).shared_bytes, 128 + (1 << 16));
  EXPECT_EQ(plan.note, "");
  constexpr i64 kBarriers = 128, kSums = 2 * 4 * (512 / 32) * 8 * sizeof(float);
  EXPECT_EQ(plan_of("softmax", softmax(3, 1 << 17)).launches.at(0).shared_bytes, kBarriers + kSums);
}

TEST(RowKernel, SaysWhyARowIsReadTwice) {
  EXPECT_EQ(plan_of("softmax", softmax(3, 1 << 20, DType::kF32)).note,
            "a row is read twice, because 262272 bytes for each of 16 CTAs are more than 231424");
  const Tensor y = dense(DType::kBf16, {3, 1 << 20});
  const KernelPlan plan =
      plan_of("softmax_backward", inferred("softmax_backward", SoftmaxBackward{.y = y, .dy = y}));
  EXPECT_EQ(plan.note,
            "a part of a row is read twice, because 262272 bytes for each of 16 CTAs are more than 231424");
  EXPECT_EQ(plan.constants.at("kept"), 7228);
  EXPECT_EQ(plan.launches.at(0).shared_bytes, 231424);
  const KernelTarget a100 = cuda::kernel_target_of("sm_80");
  EXPECT_EQ(plan_of("softmax", softmax(3, 1 << 17), a100).note,
            "a row is read twice, because the device has no clusters");
  EXPECT_EQ(plan_of("softmax", softmax(3, 1 << 17), a100).launches.at(0).name, "LongKernel");
}

// A CTA has as many lines as its shared memory holds, and its threads take all of their elements.
void expect_short(i32 rows, i32 columns, i32 groups, const KernelPlan& plan) {
  const i32 vector = i32(plan.constants.at("vector"));
  const ShortCut cut = short_cut(rows, columns, vector, 2);
  EXPECT_GE(cut.lines, 1);
  EXPECT_LE(cut.lines * rows * columns * 2, kShortBytes);
  EXPECT_EQ(plan.launches.at(0).grid, u32((groups + cut.lines - 1) / cut.lines));
  EXPECT_EQ(i64(cut.units) * cut.terms * vector, i64(rows) * columns);
  EXPECT_EQ(32 % cut.team, 0);
}

// All words of a line and all rows are taken, each thread keeps its columns, and nothing follows from the number of lines.
TEST(RowKernel, ReductionsAreCutWithoutGaps) {
  for (const auto& [rows, columns] : {std::pair{1, 8},
                                      {64, 1},
                                      {37, 24},
                                      {5, 2056},
                                      {300, 40},
                                      {9000, 2056},
                                      {1 << 24, 8},
                                      {40000, 3},
                                      {7, 2053},
                                      {1 << 20, 1},
                                      {100, 1},
                                      {5, 7},
                                      {9, 264},
                                      {32768, 4096},
                                      {5000, 2056},
                                      {100000, 40000}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    std::set<std::string> plans;
    for (const i32 groups : {1, 2, 700}) {
      const KernelPlan plan = plan_of(
          "reduce_dim", inferred("reduce_dim", ReduceDim{.x = dense(DType::kBf16, {groups, rows, columns})}));
      ASSERT_EQ(plan.why_not, "");
      plans.insert(plan.constants.text() + std::to_string(plan.launches.size()));
      if (plan.constants.at("short") != 0) {
        expect_short(rows, columns, groups, plan);
        continue;
      }
      const RowsForm form{i32(plan.constants.at("threads")),
                          i32(plan.constants.at("vector")),
                          plan.constants.at("lines") != 0,
                          true,
                          RowsForm::kMostGroups,
                          i32(plan.constants.at("cluster"))};
      const RowsCut cut = rows_cut(rows, columns, form);
      EXPECT_EQ(cut.parts > 1, plan.launches.size() == 2 || form.cluster > 1);
      EXPECT_LE(cut.team * cut.groups, form.threads);
      const i64 all = form.lines ? i64(rows) * columns / form.vector : rows;
      EXPECT_GE(cut.parts * cut.each, all);
      EXPECT_TRUE(form.cluster > 1 || (cut.parts - 1) * cut.each < all);
      if (form.lines) {
        EXPECT_EQ(i64(cut.team) * form.vector % columns, 0);
        EXPECT_TRUE(cut.parts == 1 || cut.each % cut.team == 0);
      }
    }
    EXPECT_EQ(plans.size(), 1u);
  }
}

// The sums of a gradient's parts are one launch of several CTAs.
TEST(RowKernel, SomeRowsAreAddedUpInOneLaunch) {
  const auto launches = [](i32 rows, i32 columns, const KernelTarget& target = h100()) {
    const ColumnSum sum{.x = dense(DType::kF32, {rows, columns})};
    return plan_of("column_sum", inferred("column_sum", sum), target).launches;
  };
  for (const auto& [rows, columns] : {std::pair{1847, 64}, {7385, 128}, {790, 1024}, {600, 72}}) {
    ASSERT_EQ(launches(rows, columns).size(), 1u) << rows;
    EXPECT_EQ(launches(rows, columns)[0].cluster, 8u) << rows;
    EXPECT_EQ(launches(rows, columns)[0].grid, u32(8 * ((columns + 63) / 64))) << rows;
  }
  EXPECT_EQ(launches(1 << 20, 64).size(), 2u);
  EXPECT_EQ(launches(7385, 128, cuda::kernel_target_of("sm_80")).size(), 2u);
}

// Sums have the bits that they have without gaps: nothing but how words are loaded follows from strides.
TEST(RowKernel, ReductionsAddRowsWithGapsInTheSameOrder) {
  for (const auto& [rows, columns] : {std::pair{37, 1}, {64, 8}, {64, 64}, {9, 264}, {5000, 2056}, {600, 41}})
    for (const i32 gap : {1, 8}) {
      ReduceDim args{.x = dense(DType::kBf16, {2, rows, columns})};
      const KernelPlan wanted = plan_of("reduce_dim", inferred("reduce_dim", args));
      args.x.stride[1] += gap, args.x.stride[0] = args.x.stride[1] * rows;
      const KernelPlan plan = plan_of("reduce_dim", inferred("reduce_dim", args));
      EXPECT_EQ(wanted.constants.at("gaps"), kNoGaps);
      for (const auto& [name, value] : plan.constants.values())
        EXPECT_EQ(value, name == "gaps" ? value : wanted.constants.at(name)) << name << " of " << columns;
    }
}

TEST(RowKernel, GradientsOfMaximaFindTheLargestFirst) {
  const auto names = [](std::vector<i32> size, i64 gap = 0) {
    ReduceDimBackward args{
        .x = dense(DType::kBf16, size), .dy = dense(DType::kBf16, {size[0], size[2]}), .kind = kReduceMax};
    args.x.stride[1] += gap;
    const KernelPlan plan = plan_of("reduce_dim_backward", inferred("reduce_dim_backward", args));
    std::string all = plan.why_not;
    for (const KernelLaunch& launch : plan.launches) all += launch.name + " ";
    return all;
  };
  EXPECT_EQ(names({1, 32768, 4096}), "Most MostOfParts Kernel ");
  EXPECT_EQ(names({1 << 20, 100, 1}), "Most Kernel ");
  EXPECT_EQ(names({1 << 20, 100, 8}, 8), "bf16 [1048576, 100, 8] has gaps");
}

TEST(RowKernel, ConfigurationsOfSumsAreMarked) {
  const TilingTarget target{.gpu = true, .kernels = &h100()};
  const std::vector<std::byte> args = softmax(100, 4096);
  const std::vector<OpConfig> all = configs_of(get_op("softmax"), args.data(), target);
  ASSERT_GE(all.size(), 3u);
  for (const OpConfig& config : all) {
    EXPECT_TRUE(is_of_kernel(config));
    EXPECT_EQ(config.reorders(), &config != &all.front()) << config.text();
    EXPECT_EQ(get_op("softmax").kernel(args.data(), h100(), config).why_not, "");
  }
  EXPECT_TRUE(configs_of(get_op("softmax"), args.data(), {.gpu = true}).empty())
      << "programs have tiles alone";
}

TEST(RowKernel, DefaultsCompileWithoutSpills) {
#ifdef HEDDLE_SANITIZED
  GTEST_SKIP() << "NVRTC, which no sanitizer sees into: left to builds without one";
#endif
  if (const std::string& why = cuda::why_no_compiler(); !why.empty()) GTEST_SKIP() << why;
  const auto expect_fits = [](const char* op, const std::vector<std::byte>& args) {
    const KernelPlan plan = plan_of(op, args);
    ASSERT_EQ(plan.why_not, "");
    cuda::CompileRequest request = cuda::kernel_request(get_op(op), args.data(), plan, "sm_90a");
    request.may_be_packaged = false;  // packages have no reports of ptxas
    const cuda::Compiled compiled = cuda::compile(request);
    ASSERT_EQ(compiled.kernels.size(), 1u);
    EXPECT_EQ(cuda::over_budget(compiled.kernels[0], {}), "") << op << ", " << plan.constants.text();
  };
  for (const auto& [columns, type] :
       {std::pair{8192, DType::kBf16}, {32768, DType::kBf16}, {16384, DType::kF32}})
    expect_fits("layer_norm_residual", norm(4, columns, type));
  expect_fits("layer_norm_backward",
              inferred("layer_norm_backward", LayerNormBackward{.x = dense(DType::kBf16, {32, 8192}),
                                                                .weight = dense(DType::kBf16, {8192}),
                                                                .dy = dense(DType::kBf16, {32, 8192})}));
}

}  // namespace
}  // namespace heddle
