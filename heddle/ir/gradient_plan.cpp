#include "heddle/ir/gradient_plan.h"

#include <algorithm>
#include <set>

#include "heddle/ir/registry.h"
#include "heddle/ir/shape.h"
#include "heddle/ir/tile_grid.h"

namespace heddle {
namespace {

constexpr std::string_view kTransposed = "^T";

bool is_result(const Field& field) {
  return field.writes() && !field.optional;
}

bool is_input(const Field& field) {
  return !field.is_attribute() && !field.writes();
}

int number_of(GradientPlan& plan, std::string_view name) {
  const int known = plan.find(name);
  if (known >= 0) return known;
  plan.values.emplace_back(name);
  return int(plan.values.size()) - 1;
}

GradientStep::Read read_of(const GradientPlan& plan, const GradientCall& call, const Field& field) {
  std::string_view value = call.value_of(field.name);
  const bool transposed = value.ends_with(kTransposed);
  if (transposed) value.remove_suffix(kTransposed.size());
  return {.field = &field, .value = plan.find(value), .transposed = transposed};
}

// True for an op that passes its one input on and does no arithmetic.
bool copies(const GradientStep& step) {
  const OpSpec& op = *step.op;
  const auto is_given = [](const GradientStep::Read& read) { return read.value >= 0; };
  if (!op.flops || step.writes.size() != 1 || step.writes[0].field->name != op.traits.output) return false;
  if (std::ranges::count_if(step.reads, is_given) != 1) return false;
  const GradientStep::Read& read = *std::ranges::find_if(step.reads, is_given);
  constexpr TileCoord kElement{{0, 1, 0, 1}};
  return !read.transposed && read.field->name == op.traits.input &&
         read.field->dims_text == step.writes[0].field->dims_text &&
         op.flops(op.defaults.data(), kElement) == 0;
}

GradientStep step_of(GradientPlan& plan, const GradientCall& call, const OpSpec& op,
                     std::set<int>& may_lack) {
  GradientStep step{.op = &get_op(call.op), .reads = {}, .writes = {}, .attributes = {}, .needs = {}};
  for (const Field& field : step.op->fields) {
    if (!is_input(field)) continue;
    step.reads.push_back(read_of(plan, call, field));
    const int value = step.reads.back().value;
    if (!field.optional && may_lack.contains(value)) step.needs.push_back(value);
  }
  for (const Field& field : step.op->fields)
    if (is_result(field))
      step.writes.push_back({.field = &field, .value = number_of(plan, call.value_of(field.name))});
  for (const Field& field : step.op->fields)
    if (field.is_attribute() && field.is_whole())
      if (const Field* const of_op = find_field(op.fields, field.name); of_op && of_op->is_attribute())
        step.attributes.push_back({.field = &field, .of_op = of_op});
  step.copies = copies(step);
  if (!step.needs.empty())
    for (const GradientStep::Write& write : step.writes) may_lack.insert(write.value);
  return step;
}

bool contains(std::span<const int> values, int value) {
  return std::ranges::find(values, value) != values.end();
}

i64 bytes_of(std::span<const Field* const> fields, const std::byte* args) {
  i64 bytes = 0;
  for (const Field* field : fields) {
    const Tensor& tensor = field->elements(args);
    if (tensor.rank > 0) bytes += elements(tensor) * size_of(tensor.dtype);
  }
  return bytes;
}

}  // namespace

int GradientPlan::find(std::string_view value) const {
  const auto found = std::ranges::find(values, value);
  return found == values.end() ? -1 : int(found - values.begin());
}

GradientPlan gradient_plan(const OpSpec& op) {
  GradientPlan plan;
  std::set<int> may_lack;
  for (const auto is_wanted : {is_input, is_result})
    for (const Field& field : op.fields) {
      if (!is_wanted(field)) continue;
      plan.tensors.push_back(&field);
      plan.values.push_back(field.name);
      if (field.optional) may_lack.insert(int(plan.values.size()) - 1);
    }
  for (const Field& field : op.fields)
    if (is_result(field)) plan.values.push_back("d" + field.name);
  for (const GradientCall& call : op.gradient) plan.steps.push_back(step_of(plan, call, op, may_lack));
  return plan;
}

std::vector<GradientStep> steps_for(const GradientPlan& plan, std::span<const int> wanted) {
  std::vector<int> needed(wanted.begin(), wanted.end());
  std::vector<GradientStep> steps;
  for (auto step = plan.steps.rbegin(); step != plan.steps.rend(); ++step) {
    if (std::ranges::none_of(step->writes, [&](const auto& write) { return contains(needed, write.value); }))
      continue;
    for (const GradientStep::Read& read : step->reads) needed.push_back(read.value);
    steps.push_back(*step);
  }
  std::ranges::reverse(steps);
  return steps;
}

Saved saved_of(const OpSpec& op) {
  const GradientPlan plan = gradient_plan(op);
  Saved saved{.op = &op, .inputs = {}, .outputs = {}};
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const auto reads_it = [&](const GradientStep::Read& read) { return read.value == int(i); };
    const Field* const field = plan.tensors[i];
    if (std::ranges::any_of(plan.steps,
                            [&](const auto& step) { return std::ranges::any_of(step.reads, reads_it); }))
      (field->writes() ? saved.outputs : saved.inputs).push_back(field);
  }
  return saved;
}

i64 Saved::bytes(const std::byte* args) const {
  return bytes_of_inputs(args) + bytes_of(outputs, args);
}

i64 Saved::bytes_of_inputs(const std::byte* args) const {
  return bytes_of(inputs, args);
}

double Saved::flops_again(const std::byte* args) const {
  double flops = 0;
  if (outputs.empty() || !op->flops) return flops;
  for (const TileCoord& tile : default_tiles(op->axes(args, {}))) flops += op->flops(args, tile);
  return flops;
}

}  // namespace heddle
