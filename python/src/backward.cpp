#include "python/src/backward.h"

#include <algorithm>

#include "heddle/base/invariant.h"
#include "python/src/describe.h"

namespace heddle::python {
namespace {

// The place of a field among a call's tensors; -1: it is none of them.
int place_of(std::span<const Field* const> fields, const Field* field) {
  const auto found = std::ranges::find(fields, field);
  return found == fields.end() ? -1 : int(found - fields.begin());
}

std::vector<const Field*> inputs_of(const OpEntry& entry) {
  std::vector<const Field*> fields;
  for (const TensorArgument& input : entry.inputs) fields.push_back(input.field);
  return fields;
}

std::vector<const Field*> results_of(const OpEntry& entry) {
  std::vector<const Field*> fields;
  for (const TensorArgument& output : entry.outputs)
    if (!output.field->optional) fields.push_back(output.field);
  return fields;
}

size_t number_of(const OpEntry& entry, const Field* attribute) {
  const auto found = std::ranges::find(entry.attributes, attribute, &AttributeArgument::field);
  return size_t(found - entry.attributes.begin());
}

// The tensor with leading dimensions as one, so that it has `rank` of them.
Object rows_of(PyObject* tensor, size_t rank) {
  const Object shape = owned(PyObject_GetAttrString(tensor, "shape"));
  const Py_ssize_t dims = PySequence_Size(shape.get());
  if (size_t(dims) == rank) {
    Py_INCREF(tensor);
    return Object(tensor);
  }
  const Object last =
      owned(PySequence_GetSlice(shape.get(), std::max(dims - Py_ssize_t(rank) + 1, Py_ssize_t(0)), dims));
  const Object first = owned(Py_BuildValue("(i)", -1));
  const Object wanted = owned(PySequence_Concat(first.get(), last.get()));
  return owned(PyObject_CallMethod(tensor, "reshape", "O", wanted.get()));
}

Object transposed(PyObject* tensor) {
  return owned(PyObject_GetAttrString(tensor, "mT"));
}

// A tensor of that form where another one lies.
Object empty_like(const Argument& argument, PyObject* other, const GradientForm& form) {
  const Kind& kind = *kind_of(other);
  Kept kept;
  View view;
  const MemoryPlace place = kind.read(argument, other, kept).place;
  return kind.make(argument, form.dtype, form.size, place, view, kept);
}

}  // namespace

Backward::Backward(OpEntry& entry) : entry_(entry), plan_(gradient_plan(entry.op)) {
  const std::vector<const Field*> inputs = inputs_of(entry), results = results_of(entry);
  const Saved saved = saved_of(entry.op);
  for (const auto* fields : {&saved.inputs, &saved.outputs})
    for (const Field* field : *fields) {
      const int input = place_of(inputs, field);
      saved_.push_back(input >= 0 ? input : int(inputs.size()) + place_of(results, field));
      saved_values_.push_back(plan_.find(field->name));
    }
  std::vector<int> written;
  for (const GradientStep& step : plan_.steps)
    for (const GradientStep::Write& write : step.writes) written.push_back(write.value);
  for (const Field* input : inputs) {
    const int value = plan_.find("d" + input->name);
    gradients_.push_back(std::ranges::find(written, value) == written.end() ? -1 : value);
  }
  for (const Field* result : results) grads_.push_back(plan_.find("d" + result->name));
}

Backward::Step Backward::step_of(const GradientStep& planned, u32 needs) const {
  Step step{.entry = &entry_of(planned.op->name),
            .reads = {},
            .writes = {},
            .attributes = {},
            .needs = planned.needs};
  for (const Field* input : inputs_of(*step.entry)) {
    const GradientStep::Read& read = *std::ranges::find(planned.reads, input, &GradientStep::Read::field);
    step.reads.push_back({.value = read.value, .transposed = read.transposed});
    step.transposes = step.transposes || read.transposed;
  }
  for (const Field* result : results_of(*step.entry))
    step.writes.push_back(std::ranges::find(planned.writes, result, &GradientStep::Write::field)->value);
  if (planned.copies) step.copied = std::ranges::max(planned.reads, {}, &GradientStep::Read::value).value;
  for (const GradientStep::Shared& shared : planned.attributes) {
    const std::byte* const defaults = entry_.op.defaults.data();
    const bool is_default =
        entry_.attributes[number_of(entry_, shared.of_op)].required ||
        get_attribute(*shared.of_op, defaults) == get_attribute(*shared.field, planned.op->defaults.data());
    PyObject* const otherwise =
        is_default ? nullptr : attribute_object(*shared.of_op, defaults).release().ptr();
    step.attributes.push_back({.to = number_of(*step.entry, shared.field),
                               .from = number_of(entry_, shared.of_op),
                               .otherwise = otherwise});
  }
  const TensorArgument& first = step.entry->outputs[0];
  if (step.writes.size() == 1 && first.lead < 0 && first.field->dims.size() == 1) {
    const auto wanted = std::ranges::find(gradients_, step.writes[0]);
    const auto input = wanted - gradients_.begin();
    if (wanted != gradients_.end() && needs >> input & 1) step.vector_of = int(input);
  }
  return step;
}

const std::vector<Backward::Step>& Backward::steps_for(u32 needs) {
  const auto found = steps_.find(needs);
  if (found != steps_.end()) return found->second;
  std::vector<int> wanted;
  for (size_t i = 0; i < gradients_.size(); ++i)
    if (needs >> i & 1) wanted.push_back(gradients_[i]);
  std::vector<Step> steps;
  for (const GradientStep& step : heddle::steps_for(plan_, wanted)) steps.push_back(step_of(step, needs));
  return steps_.try_emplace(needs, std::move(steps)).first->second;
}

Object Backward::call(const Step& step, std::span<PyObject* const> values, const BackwardValues& given,
                      std::span<const GradientForm> forms) const {
  Given made;
  Kept kept;
  made.inputs.resize(step.reads.size());
  for (size_t i = 0; i < step.reads.size(); ++i) {
    const Read& read = step.reads[i];
    made.inputs[i] = read.value < 0 ? nullptr : values[size_t(read.value)];
    if (!step.transposes || !made.inputs[i]) continue;
    kept.push_back(rows_of(made.inputs[i], step.entry->inputs[i].field->dims.size()));
    if (read.transposed) kept.push_back(transposed(kept.back().get()));
    made.inputs[i] = kept.back().get();
  }
  made.attributes.resize(step.entry->attributes.size());
  for (const Attribute& attribute : step.attributes) {
    PyObject* const value = given.attributes[attribute.from];
    made.attributes[attribute.to] = value ? value : attribute.otherwise;
  }
  if (step.vector_of >= 0 && !forms.empty()) {
    const GradientForm& form = forms[size_t(step.vector_of)];
    if (form.dtype != DType::kF32 || form.size.size() != 1) {
      const Argument argument{step.entry->op.name, step.entry->outputs[0].name};
      kept.push_back(empty_like(argument, made.inputs[0], form));
      made.out = kept.back().get();
    }
  }
  return call_op(*step.entry, made);
}

Few<Object> Backward::run(u32 needs, const BackwardValues& given, std::span<const GradientForm> forms) {
  std::vector<PyObject*> values(plan_.values.size());
  std::vector<Object> kept;
  for (size_t i = 0; i < saved_.size(); ++i) values[size_t(saved_values_[i])] = given.saved[i];
  for (size_t i = 0; i < grads_.size(); ++i) values[size_t(grads_[i])] = given.grads[i];
  for (const Step& step : steps_for(needs)) {
    if (std::ranges::any_of(step.needs, [&](int value) { return !values[size_t(value)]; })) continue;
    if (step.copied >= 0) {
      values[size_t(step.writes[0])] = values[size_t(step.copied)];
      continue;
    }
    kept.push_back(call(step, values, given, forms));
    PyObject* const made = kept.back().get();
    for (size_t i = 0; i < step.writes.size(); ++i)
      values[size_t(step.writes[i])] = step.writes.size() == 1 ? made : PyTuple_GetItem(made, Py_ssize_t(i));
  }
  Few<Object> gradients;
  gradients.resize(gradients_.size());
  for (size_t i = 0; i < gradients_.size(); ++i) {
    if (!(needs >> i & 1) || gradients_[i] < 0) continue;
    PyObject* const value = values[size_t(gradients_[i])];
    Py_XINCREF(value);
    gradients[i] = Object(value);
  }
  return gradients;
}

}  // namespace heddle::python
