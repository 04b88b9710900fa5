// An op that is made while the program runs. Its functions carry a context, and it goes through a graph,
// every schedule, the check, and the CPU's executors like any other op.
#include <atomic>
#include <memory>

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/engine/compile.h"
#include "heddle/ir/check/check.h"
#include "heddle/ir/executor/executor.h"
#include "heddle/ir/infer.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/rules.h"
#include "heddle/ops/add/add.h"
#include "heddle/schedule/schedule.h"
#include "tests/support/case_runner.h"

namespace heddle {
namespace {

// Indices of blend's arguments.
enum { kX, kBias, kY, kHead, kFactor, kCount };

float* element(const Tensor& tensor, i32 row, i32 column) {
  return reinterpret_cast<float*>(tensor.data) + row * tensor.stride[0] + column;
}

// y = factor x + bias; head = the first `count` columns of y. Only f32.
class Blend {
 public:
  static OpSpec op(std::string name) {
    const auto blend = std::make_shared<Blend>();
    OpSpec op;
    op.name = std::move(name);
    op.doc = "y = factor x + bias, and its first columns";
    op.fields = {tensor_field("x", Access::kRead, "M, N", "f32"),
                 tensor_field("bias", Access::kRead, "N", "f32"),
                 tensor_field("y", Access::kWrite, "M, N", "f32"),
                 tensor_field("head", Access::kWrite, "M, count", "f32"),
                 attribute_field("factor", AttributeType::kFloat),
                 attribute_field("count", AttributeType::kI32)};
    op.fields[kBias].optional = true;
    op.defaults = lay_out(op.fields);
    op.infer = infer_from_dims(op.name, op.fields);
    op.axes = [blend](const std::byte* args, const TilingTarget&) {
      return row_axes(blend->fields[kX].tensor(args).size[0], 2);
    };
    op.flops = [blend](const std::byte* args, const TileCoord& tile) {
      return 2.0 * (tile[1] - tile[0]) * blend->fields[kX].tensor(args).size[1];
    };
    op.reference = [blend](const std::byte* args, Values& values) { blend->reference(args, values); };
    op.body = [blend](const std::byte* args, const TileCoord& tile) { blend->run(args, tile); };
    op.cases = [blend] { return blend->cases(); };
    blend->fields = op.fields, blend->defaults = op.defaults;
    return op;
  }

  std::vector<std::byte> args(const Tensor& x, const Tensor& bias, double factor, i64 count) const {
    std::vector<std::byte> args = defaults;
    fields[kX].tensor(args.data()) = x;
    fields[kBias].tensor(args.data()) = bias;
    set_attribute("blend", fields[kFactor], args.data(), factor);
    set_attribute("blend", fields[kCount], args.data(), count);
    return args;
  }

  std::vector<Field> fields;
  std::vector<std::byte> defaults;

 private:
  float factor(const std::byte* args) const {
    return float(std::get<double>(get_attribute(fields[kFactor], args)));
  }
  i32 count(const std::byte* args) const { return i32(std::get<i64>(get_attribute(fields[kCount], args))); }

  void reference(const std::byte* args, Values& values) const {
    const Tensor &x = fields[kX].tensor(args), &bias = fields[kBias].tensor(args);
    const auto columns = size_t(x.size[1]);
    std::vector<double> y = values.read(x), head;
    const std::vector<double> b = bias.exists() ? values.read(bias) : std::vector<double>(columns);
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] = double(factor(args)) * y[i] + b[i % columns];
      if (i % columns < size_t(count(args))) head.push_back(y[i]);
    }
    values.write(fields[kY].tensor(args), y);
    values.write(fields[kHead].tensor(args), head);
  }

  void run(const std::byte* args, const TileCoord& tile) const {
    const Tensor &x = fields[kX].tensor(args), &bias = fields[kBias].tensor(args);
    for (i32 row = tile[0]; row < tile[1]; ++row)
      for (i32 i = 0; i < x.size[1]; ++i) {
        const float b = bias.exists() ? reinterpret_cast<const float*>(bias.data)[i] : 0;
        const float y = factor(args) * *element(x, row, i) + b;
        *element(fields[kY].tensor(args), row, i) = y;
        if (i < count(args)) *element(fields[kHead].tensor(args), row, i) = y;
      }
  }

  std::vector<Case> cases() const {
    return {{"with a bias", args(dense(DType::kF32, {5, 12}), dense(DType::kF32, {12}), 1.5, 3), 1e-6, {}},
            {"without", args(dense(DType::kF32, {3, 4}), {}, -2, 4), 1e-6, {}}};
  }
};

const OpSpec& blend_op() {
  static const OpSpec& op = add_op(Blend::op("blend"));
  return op;
}

class RunTimeOp : public testing::TestWithParam<const char*> {};

TEST_P(RunTimeOp, MatchesItsReference) {
  const OpSpec& op = blend_op();
  for (const Case& test : op.cases()) EXPECT_EQ(run_case(op, test, GetParam()).problem, "") << test.name;
}

// Memory of a program's buffers.
class Buffers {
 public:
  explicit Buffers(const Program& program) {
    arena_.resize(size_t(program.arena_bytes) / sizeof(Line) + 1);
    for (const ProgramBuffer& buffer : program.buffers) {
      auto& own = own_.emplace_back(size_t(buffer.info.bytes) / sizeof(Line) + 1);
      memory_.base.push_back(buffer.arena_offset >= 0 ? arena_[0].bytes + buffer.arena_offset : own[0].bytes);
      memory_.panels.push_back(nullptr);
    }
  }
  const Memory& memory() const { return memory_; }
  float* values(u32 buffer) const { return reinterpret_cast<float*>(memory_.base[buffer]); }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> arena_;
  std::vector<std::vector<Line>> own_;
  Memory memory_;
};

// sum = blend(blend(x).y) + x, of 8 rows on 3 workers.
class BlendTwice {
 public:
  BlendTwice() {
    const OpSpec& op = blend_op();
    x_ = graph_.add_tensor("x", BufferKind::kTable, DType::kF32, {kRows, kCols});
    sum_ = graph_.add_tensor("sum", BufferKind::kOutput, DType::kF32, {kRows, kCols});
    const Tensor first = blend(op, "first", x_, 2);
    const Tensor second = blend(op, "second", first, 3);
    graph_.call("add", "add", Add{.a = second, .b = x_, .y = sum_});
  }
  Program program(const std::string& scheduler) const {
    CompileOptions options;
    options.scheduler = scheduler;
    return compile(graph_, {.rows = 1024}, place(graph_, options.passes, {.workers = 3}), options);
  }
  // Runs a program and returns how many elements of the sum are wrong.
  int wrong_sums(const Program& program, const std::string& executor, const ExecutorOptions& options) const {
    const Buffers buffers(program);
    for (i32 i = 0; i < kRows * kCols; ++i) buffers.values(x_.buffer)[i] = float(i);
    get_executor(executor).create(program, buffers.memory(), options)->run(2);
    int wrong = 0;
    for (i32 i = 0; i < kRows * kCols; ++i) wrong += buffers.values(sum_.buffer)[i] != float(6 * i + i);
    return wrong;
  }

 private:
  static constexpr i32 kRows = 8, kCols = 16;

  Tensor blend(const OpSpec& op, const std::string& name, const Tensor& x, double factor) {
    std::vector<std::byte> args = op.defaults;
    op.fields[kX].tensor(args.data()) = x;
    set_attribute(op.name, op.fields[kFactor], args.data(), factor);
    set_attribute(op.name, op.fields[kCount], args.data(), i64{1});
    return *argument(graph_.append(op, name, std::move(args)).main_part(), "y");
  }

  Graph graph_;
  Tensor x_, sum_;
};

TEST_P(RunTimeOp, GoesThroughGraphScheduleAndCheck) {
  const BlendTwice graph;
  for (const Scheduler* scheduler : all_schedulers()) {
    const Program program = graph.program(scheduler->name);
    const CheckReport report = check(program);
    ASSERT_TRUE(report.ok()) << scheduler->name << ": " << report.faults[0].message;
    EXPECT_EQ(graph.wrong_sums(program, GetParam(), {.threads = 2}), 0) << scheduler->name;
    const Program again = parse_program(serialise_program(program), "again");
    EXPECT_EQ(graph.wrong_sums(again, GetParam(), {.seed = 3, .adversarial = true, .stale_reads = true}), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Executors, RunTimeOp, testing::Values("reference", "threads"),
                         [](const auto& param) { return std::string(param.param); });

TEST(RunTimeOpWithoutABody, IsRefusedByName) {
  OpSpec op = Blend::op("bodiless");
  op.body = nullptr;
  const OpSpec& added = add_op(std::move(op));
  try {
    run_case(added, added.cases()[0], "threads");
    FAIL() << "it ran";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[bodiless] has no tile body in this build");
  }
}

TEST(RunTimeOpWithAWatchedBody, TellsTheReferenceExecutorWhatItTouches) {
  OpSpec op = Blend::op("watched");
  const Field x = op.fields[0];
  op.watched_body = [x, body = op.body](const std::byte* args, const TileCoord& tile,
                                        const AccessHook& hook) {
    const Tensor& tensor = x.tensor(args);
    hook.touch(hook.context, tensor.data + tile[1] * tensor.stride[0] * 4, 4,
               false);  // the row after its own
    body(args, tile);
  };
  const OpSpec& added = add_op(std::move(op));
  run_case(added, added.cases()[0], "threads");  // nobody listens
  try {
    run_case(added, added.cases()[0], "reference");
    FAIL() << "it was not seen";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("reads 4 bytes outside of what it declares"), std::string::npos)
        << error.what();
  }
}

TEST(RunTimeOpWithAFailingBody, EndsTheRunWithItsError) {
  OpSpec op = Blend::op("failing");
  op.body = [](const std::byte*, const TileCoord& tile) {
    fail(ErrorCode::kInvalidArgument, "[failing] row {} is bad", tile[0]);
  };
  const OpSpec& added = add_op(std::move(op));
  for (const char* executor : {"reference", "threads"})
    EXPECT_THROW(run_case(added, added.cases()[0], executor), Error) << executor;
}

}  // namespace
}  // namespace heddle
