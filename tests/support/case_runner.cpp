#include "tests/support/case_runner.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "heddle/base/invariant.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/rules.h"
#include "heddle/ops/linear/linear.h"
#include "tests/support/case_memory.h"
#include "tests/support/case_program.h"
#include "tests/support/space_mirror.h"

namespace heddle {
namespace {

using IsRight = std::function<bool(double got, double wanted)>;

std::string compare(const std::string& name, std::span<const double> got, std::span<const double> wanted,
                    const IsRight& is_right, CaseResult& result) {
  for (size_t i = 0; i < got.size(); ++i) {
    if (is_right(got[i], wanted[i])) continue;
    const double error = std::abs(got[i] - wanted[i]) / (1 + std::abs(wanted[i]));
    result.error = std::max(result.error, error);
    if (!(error <= result.bound))
      return fmt::format("{}[{}] is {}; the reference has {}, error {:.3g} above {:.3g}", name, i, got[i],
                         wanted[i], error, result.bound);
  }
  return "";
}

// Keeps what the references left in the outputs, restores the previous content, runs the node and compares.
class Comparison {
 public:
  Comparison(
      CaseMemory& memory, std::vector<Output> outputs, double bound, ExecutorOptions options = {},
      IsRight is_right =
          [](double got, double wanted) { return got == wanted || (std::isnan(got) && std::isnan(wanted)); })
      : memory_(memory),
        outputs_(std::move(outputs)),
        options_(std::move(options)),
        is_right_(std::move(is_right)) {
    result_.bound = bound;
    for (const Output& output : outputs_) before_.push_back(memory_.read(output.tensor));
  }

  void references_done() {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      wanted_.push_back(memory_.read(outputs_[o].tensor));
      memory_.write(outputs_[o].tensor, before_[o]);
    }
  }

  CaseResult run(const Node& node, std::span<const TileAxis> axes, const std::string& executor) {
    run_as(one_call(node, memory_.buffers, axes), executor);
    return result_;
  }
  // Runs the node with all rows and, in a program of one row, with one row: devices have separate kernels for
  // that.
  CaseResult run_all(const Node& node, std::span<const TileAxis> axes, const std::string& executor) {
    Program program = one_call(node, memory_.buffers, axes);
    run_as(program, executor);
    const bool alone = !axes.empty() && axes[0].dim == std::string_view("M") && axes[0].extent == 1;
    if (!alone || !get_executor(executor).space || !result_.problem.empty()) return result_;
    for (size_t o = 0; o < outputs_.size(); ++o) memory_.write(outputs_[o].tensor, before_[o]);
    program.shape.rows = 1;
    run_as(program, executor);
    if (!result_.problem.empty()) result_.problem += ", in a program of one row";
    return result_;
  }

 private:
  void run_as(const Program& program, const std::string& executor) {
    run_on(get_executor(executor), program);
    result_.outputs.clear();
    for (const Output& output : outputs_) {
      const std::vector<double> got = memory_.read(output.tensor);
      result_.outputs.insert(result_.outputs.end(), got.begin(), got.end());
    }
    for (size_t o = 0; o < outputs_.size() && result_.problem.empty(); ++o)
      result_.problem =
          compare(outputs_[o].name, memory_.read(outputs_[o].tensor), wanted_[o], is_right_, result_);
    if (result_.problem.empty() && !memory_.canaries_whole())
      result_.problem = "a canary beside a buffer was overwritten";
  }
  void run_on(const ExecutorSpec& executor, const Program& program) {
    if (!executor.space) {
      executor.create(program, memory_.memory, options_)->run(1);
      return;
    }
    SpaceMirror mirror(memory_, executor.space(0));
    executor.create(program, mirror.memory(), options_)->run(1);
    mirror.fetch();
  }

  CaseMemory& memory_;
  std::vector<Output> outputs_;
  ExecutorOptions options_;
  IsRight is_right_;
  std::vector<std::vector<double>> before_, wanted_;
  CaseResult result_;
};

Tensor& tensor_of(Part& part, const std::string& name) {
  Tensor* found = argument(part, name);
  HEDDLE_CHECK(found != nullptr);
  return *found;
}

Part part_of_case(const OpSpec& op, const Case& test) {
  Part part{&op, test.args};
  op.infer(part.args.data());
  return part;
}

Part linear_part(const Linear& args) {
  Part part{&get_op("linear"), std::vector<std::byte>(sizeof(Linear))};
  new (part.args.data()) Linear(args);
  return part;
}

constexpr i32 kPanelRows = 16, kInputs = 40;  // panels and inputs of the chain's linear

}  // namespace

CaseResult run_case(const OpSpec& op, const Case& test, const std::string& executor,
                    const CaseOptions& options) {
  CaseMemory memory;
  Part part = part_of_case(op, test);
  auto outputs = allocate(op, part.args.data(), memory);
  if (test.prepare) test.prepare(part.args.data(), memory);
  const bool is_planted = !options.planted.field.empty();
  if (is_planted) plant(op, part.args.data(), memory, options.planted);
  Comparison comparison(
      memory, std::move(outputs), test.bound, {.simd = options.simd},
      [&](double got, double wanted) { return is_equal_or_reached(op, is_planted, got, wanted); });
  op.reference(part.args.data(), memory);
  comparison.references_done();
  Node node{.name = op.name, .parts = {part}};
  if (options.config) node.config = *options.config;
  const bool gpu = options.config && get_executor(executor).space;
  return comparison.run_all(node, axes_of(node, {.gpu = gpu}), executor);
}

bool fits_chain(const OpSpec& op, const Case& test) {
  if (!op.traits.prologue && !op.traits.epilogue) return false;
  Part part = part_of_case(op, test);
  if (op.traits.can_fuse && !op.traits.can_fuse(part.args.data())) return false;
  return tensor_of(part, op.traits.epilogue ? op.traits.input : op.traits.output).dtype == DType::kF32;
}

namespace {

CaseResult run_epilogue(const OpSpec& op, const Case& test, const std::string& executor) {
  CaseMemory memory;
  Part part = part_of_case(op, test);
  auto outputs = allocate(op, part.args.data(), memory);
  Tensor& in = tensor_of(part, op.traits.input);
  Tensor& out = tensor_of(part, op.traits.output);
  Linear args{.x = dense(DType::kF32, {in.size[0], kInputs}), .y = in};
  args.w.data = dense(DType::kF32, {in.last(), kInputs});
  args.w.panel_rows = kPanelRows, args.w.interleave = 1;
  Part linear = linear_part(args);
  allocate(*linear.op, linear.args.data(), memory);
  if (test.prepare) test.prepare(part.args.data(), memory);
  if (&in == &out) outputs.push_back({op.traits.input, in});
  // The value between the two is a sum of kInputs products, and the op may double its error.
  Comparison comparison(memory, std::move(outputs), 2 * test.bound + kInputs * 0x1p-22);
  linear.op->reference(linear.args.data(), memory);
  op.reference(part.args.data(), memory);
  comparison.references_done();

  tensor_of(linear, "y") = out;
  in.buffer = out.buffer = kNoBuffer;
  auto axes = linear.op->axes(linear.args.data(), TilingTarget{});
  axes[0].preferred = 3, axes[1].preferred = 3 * kPanelRows;  // tiles begin in the middle of a head
  return comparison.run({.name = "chain", .parts = {linear, part}}, axes, executor);
}

CaseResult run_prologue(const OpSpec& op, const Case& test, const std::string& executor) {
  CaseMemory memory;
  Part part = part_of_case(op, test);
  allocate(op, part.args.data(), memory);
  Tensor& out = tensor_of(part, op.traits.output);
  Linear args{.x = out, .y = dense(DType::kF32, {out.size[0], 2 * kPanelRows + 5})};
  args.w.data = dense(DType::kF32, {args.y.last(), out.last()});
  args.w.panel_rows = kPanelRows, args.w.interleave = 1;
  Part linear = linear_part(args);
  auto outputs = allocate(*linear.op, linear.args.data(), memory);
  if (test.prepare) test.prepare(part.args.data(), memory);
  Comparison comparison(memory, std::move(outputs), test.bound * (1 + out.last()));
  op.reference(part.args.data(), memory);
  linear.op->reference(linear.args.data(), memory);
  comparison.references_done();

  tensor_of(linear, "x").buffer = out.buffer = kNoBuffer;
  auto axes = linear.op->axes(linear.args.data(), TilingTarget{});
  axes[0].preferred = 3, axes[1].preferred = kPanelRows;
  return comparison.run({.name = "chain", .parts = {part, linear}, .main = 1}, axes, executor);
}

}  // namespace

CaseResult run_chain(const OpSpec& op, const Case& test, const std::string& executor) {
  return op.traits.epilogue ? run_epilogue(op, test, executor) : run_prologue(op, test, executor);
}

}  // namespace heddle
