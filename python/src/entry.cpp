#include "python/src/entry.h"

#include <algorithm>
#include <map>

#include "heddle/base/near_names.h"
#include "heddle/engine/builtins.h"
#include "heddle/ir/registry.h"

namespace heddle::python {
namespace {

std::string python_name(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

// Names of dimensions that stand nowhere but first, and the tensors' numbers of them.
void number_leads(OpEntry& entry) {
  std::map<std::string, bool> first_only;
  for (const Field& field : entry.op.fields) {
    if (!field.is_tensor()) continue;
    for (size_t d = 0; d < field.dims.size(); ++d) {
      const FieldDim& dim = field.dims[d];
      bool& first = first_only.try_emplace(dim.name, true).first->second;
      first = first && d == 0 && dim.scale == 1 && !dim.is_attribute && dim.name != ".";
    }
  }
  std::map<std::string, int> numbers;
  for (auto* arguments : {&entry.inputs, &entry.outputs})
    for (TensorArgument& argument : *arguments) {
      const std::string& name = argument.field->dims[0].name;
      // An output's own dimension has nothing to take.
      if (!first_only.at(name) || (arguments == &entry.outputs && !numbers.contains(name))) continue;
      argument.lead = numbers.try_emplace(name, int(numbers.size())).first->second;
    }
  entry.leads = int(numbers.size());
}

// Some ops take sizes for which 0 is no value: each of their own cases is refused with it.
bool is_refused_as_zero(const OpSpec& op, const Field& field) {
  if (!op.cases || (field.type != AttributeType::kI32 && field.type != AttributeType::kI64)) return false;
  if (std::get<i64>(get_attribute(field, op.defaults.data())) != 0) return false;
  for (const Case& test : op.cases()) {
    std::vector<std::byte> args = test.args;
    set_attribute(op.name, field, args.data(), i64(0));
    try {
      check_call(op, args.data());
      return false;
    } catch (const Error&) {
    }
  }
  return true;
}

std::string why_not(const OpSpec& op) {
  if (needs_step_record(op))
    return "is a part of a program, because it reads the step record: use a graph, or heddle.load for a "
           "model";
  for (const Field& field : op.fields)
    if (field.is_weight())
      return "takes a packed weight, which only a program has: use matmul for a product of plain tensors";
  return "";
}

}  // namespace

OpEntry::OpEntry(const OpSpec& op_spec) : op(op_spec), why_not(python::why_not(op_spec)) {
  for (const Field& field : op.fields) {
    const std::string name = python_name(field.name);
    PyObject* const key = PyUnicode_InternFromString(name.c_str());
    if (!field.is_attribute())
      (field.writes() ? outputs : inputs).push_back({.field = &field, .name = name, .key = key});
    else if (field.is_whole())  // how a matrix lies is seen, not told
      attributes.push_back({.field = &field, .key = key});
  }
  if (std::ranges::any_of(op.fields,
                          [](const Field& field) { return field.is_matrix() && field.allows(DType::kBf16); }))
    autocast = Autocast::kLower;
  else if (op.traits.wants_f32)
    autocast = Autocast::kF32;
  // Optional tensors come last, so that those before them can be given by position.
  std::stable_partition(inputs.begin(), inputs.end(),
                        [](const auto& input) { return !input.field->optional; });
  if (why_not.empty()) number_leads(*this);
  constexpr size_t kMost = Few<int>::kMost;
  if (op.args_size() > kMostArgs || inputs.size() + outputs.size() > kMost || attributes.size() > kMost)
    why_not = "has more arguments than a call from Python can have: use it in a graph";
  ignored = find_field(op.fields, "ignore_index");
  if (why_not.empty())
    for (AttributeArgument& attribute : attributes)
      attribute.required = is_refused_as_zero(op, *attribute.field);
}

void OpEntry::set_over_dim(PyObject* function) {
  Py_INCREF(function);
  over_dim = function;
}

std::string value_text(const Field& field, const std::byte* args) {
  std::string text = attribute_text(field, args);
  if (field.type == AttributeType::kChoice) return "'" + text + "'";
  if (field.type == AttributeType::kBool) return text == "true" ? "True" : "False";
  return text;
}

std::string OpEntry::signature() const {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const TensorArgument& input : inputs) add(input.name + (input.field->optional ? "=None" : ""));
  if (over_dim) add("dim=-1");
  add("*");
  for (const AttributeArgument& attribute : attributes)
    add(attribute.field->name +
        (attribute.required ? "" : "=" + value_text(*attribute.field, op.defaults.data())));
  add("out=None");
  return "(" + text + ")";
}

ForcedBackend& forced_backend() {
  static thread_local ForcedBackend forced;
  return forced;
}

bool uses_reference(const OpEntry& entry) {
  const ForcedBackend& forced = forced_backend();
  return forced.entry == &entry ? forced.reference : entry.use_reference.load();
}

std::deque<OpEntry>& entries() {
  static auto& all = *[] {
    register_builtins();
    auto* made = new std::deque<OpEntry>;
    for (const OpSpec* op : all_ops()) made->emplace_back(*op);
    return made;
  }();
  return all;
}

OpEntry& entry_of(std::string_view name) {
  std::vector<std::string> known;
  for (OpEntry& entry : entries()) {
    if (entry.op.name == name) return entry;
    known.push_back(entry.op.name);
  }
  fail(ErrorCode::kInvalidArgument, "[heddle.ops] there is no op '{}'{}", name, meant_or_all(name, known));
}

}  // namespace heddle::python
