#include "heddle/ir/gradient_plan.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "heddle/ir/registry.h"
#include "heddle/ir/shape.h"

namespace heddle {
namespace {

std::vector<std::string> names_of(std::span<const Field* const> fields) {
  std::vector<std::string> names;
  for (const Field* field : fields) names.push_back(field->name);
  return names;
}

std::vector<std::string> ops_for(const GradientPlan& plan, const std::vector<std::string>& wanted) {
  std::vector<int> values;
  for (const std::string& name : wanted) values.push_back(plan.find(name));
  std::vector<std::string> ops;
  for (const GradientStep& step : steps_for(plan, values)) ops.push_back(step.op->name);
  return ops;
}

using Names = std::vector<std::string>;

TEST(GradientPlan, HasTheStepsThatWantedValuesNeed) {
  const GradientPlan plan = gradient_plan(get_op("layer_norm"));
  EXPECT_EQ(ops_for(plan, {"dx"}), Names{"layer_norm_backward"});
  EXPECT_EQ(ops_for(plan, {"dbias"}), (Names{"layer_norm_backward", "column_sum"}));
  EXPECT_EQ(plan.steps.size(), 3);
  EXPECT_EQ(plan.find("nothing"), -1);
  EXPECT_TRUE(gradient_plan(get_op("softmax_backward")).steps.empty());
}

TEST(GradientPlan, SaysWhatIsTransposedAndWhichAttributesGoOn) {
  const GradientPlan plan = gradient_plan(get_op("matmul"));
  const auto is_transposed = [](const GradientStep::Read& read) { return read.transposed; };
  EXPECT_TRUE(std::ranges::any_of(plan.steps[0].reads, is_transposed));
  const GradientPlan norm = gradient_plan(get_op("rms_norm"));
  const Names shared = {norm.steps[0].attributes[0].field->name, norm.steps[0].attributes[0].of_op->name};
  EXPECT_EQ(shared, (Names{"eps", "eps"}));
}

TEST(GradientPlan, KnowsWhatCopies) {
  std::vector<std::string> copies;
  for (const OpSpec* op : all_ops())
    for (const GradientStep& step : gradient_plan(*op).steps)
      if (step.copies) copies.push_back(op->name + " " + step.op->name);
  EXPECT_EQ(copies, (Names{"add add_backward", "add add_backward", "bias copy", "copy copy",
                           "layer_norm_residual copy", "rms_norm_residual copy"}));
}

TEST(GradientPlan, EveryReadIsKnownWhenItsStepRuns) {
  for (const OpSpec* op : all_ops()) {
    const GradientPlan plan = gradient_plan(*op);
    size_t known = plan.values.size();
    for (const GradientStep& step : plan.steps)
      for (const GradientStep::Write& write : step.writes) known = std::min(known, size_t(write.value));
    std::vector<bool> there(plan.values.size());
    std::fill(there.begin(), there.begin() + std::ptrdiff_t(known), true);
    for (const GradientStep& step : plan.steps) {
      for (const GradientStep::Read& read : step.reads)
        EXPECT_TRUE(read.value < 0 ? read.field->optional : bool(there[size_t(read.value)]))
            << op->name << " calls " << step.op->name << ": " << read.field->name;
      for (const GradientStep::Write& write : step.writes) there[size_t(write.value)] = true;
    }
  }
}

TEST(SavedOf, IsWhatTheBackwardReads) {
  const Saved norm = saved_of(get_op("rms_norm")), softmax = saved_of(get_op("softmax"));
  EXPECT_EQ(names_of(norm.inputs), (Names{"x", "weight"}));
  EXPECT_TRUE(norm.outputs.empty());
  EXPECT_TRUE(softmax.inputs.empty());
  EXPECT_EQ(names_of(softmax.outputs), Names{"y"});
  EXPECT_TRUE(saved_of(get_op("add")).inputs.empty());
}

TEST(SavedOf, CountsBytesAndTheWorkOfMakingOutputsAgain) {
  for (const OpSpec* op : all_ops()) {
    if (op->gradient.empty()) continue;
    const Saved saved = saved_of(*op);
    std::vector<std::byte> args = op->cases().front().args;
    op->infer(args.data());
    i64 bytes = 0;
    for (const auto* fields : {&saved.inputs, &saved.outputs})
      for (const Field* field : *fields)
        if (const Tensor& tensor = field->elements(args.data()); tensor.rank > 0)
          bytes += elements(tensor) * size_of(tensor.dtype);
    EXPECT_EQ(saved.bytes(args.data()), bytes) << op->name;
    EXPECT_LE(saved.bytes_of_inputs(args.data()), bytes) << op->name;
    EXPECT_EQ(saved.flops_again(args.data()) > 0, !saved.outputs.empty()) << op->name;
  }
}

}  // namespace
}  // namespace heddle
