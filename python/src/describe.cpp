#include "python/src/describe.h"

#include <cstdlib>
#include <type_traits>

#include <fmt/format.h>

#include "heddle/ir/gradient_plan.h"
#include "python/src/document.h"
#include "python/src/object.h"

namespace heddle::python {

namespace nb = nanobind;

namespace {

// The number of the fewest digits that is this float: 1e-05, not 9.99999974737875e-06.
double as_written(float value) {
  return std::strtod(fmt::format("{}", value).c_str(), nullptr);
}

std::string note_of(const Notes& notes, std::string_view name) {
  const auto found = notes.of.find(name);
  return found == notes.of.end() ? "" : found->second;
}

nb::dict describe_tensor(const TensorArgument& argument, const Notes& notes) {
  const Field& field = *argument.field;
  nb::dict made;
  nb::list dims, dtypes;
  for (const FieldDim& dim : field.dims) {
    const bool is_unnamed = dim.name == ".";
    dims.append(nb::make_tuple(text(is_unnamed ? "" : dim.name), dim.scale, dim.is_attribute));
  }
  for (const DType dtype : field.dtypes) dtypes.append(text(info_of(dtype).numpy));
  made["name"] = text(argument.name);
  made["field"] = text(field.name);
  made["dims"] = dims;
  made["dims_text"] = text(field.dims_text);
  made["dtypes"] = dtypes;
  made["optional"] = field.optional;
  made["lead"] = argument.lead;
  made["note"] = text(note_of(notes, field.member.substr(0, field.member.find('.'))));
  return made;
}

nb::dict describe_attribute(const AttributeArgument& argument, const std::byte* defaults,
                            const Notes& notes) {
  static constexpr const char* kTypes[] = {"int", "int", "float", "bool", "str"};  // by AttributeType
  const Field& field = *argument.field;
  nb::dict made;
  nb::list choices;
  for (const std::string& choice : field.choices) choices.append(text(choice));
  made["name"] = text(field.name);
  made["type"] = text(kTypes[int(field.type)]);
  made["default"] = argument.required ? nb::object(nb::none()) : attribute_object(field, defaults);
  made["choices"] = choices;
  made["note"] = text(note_of(notes, field.name));
  return made;
}

}  // namespace

nb::object attribute_object(const Field& field, const std::byte* args) {
  return std::visit(
      []<class T>(const T& value) -> nb::object {
        if constexpr (std::is_same_v<T, std::string>)
          return text(value);
        else if constexpr (std::is_same_v<T, double>)
          return nb::cast(as_written(float(value)));
        else
          return nb::cast(value);
      },
      get_attribute(field, args));
}

nb::dict describe(const OpEntry& entry) {
  nb::dict made;
  nb::list inputs, outputs, attributes, gradient, saved;
  const Notes notes = notes_of(entry.op);
  for (const TensorArgument& input : entry.inputs) inputs.append(describe_tensor(input, notes));
  for (const TensorArgument& output : entry.outputs) outputs.append(describe_tensor(output, notes));
  for (const AttributeArgument& attribute : entry.attributes)
    attributes.append(describe_attribute(attribute, entry.op.defaults.data(), notes));
  const Saved of_gradient = saved_of(entry.op);
  for (const auto* fields : {&of_gradient.inputs, &of_gradient.outputs})
    for (const Field* field : *fields) saved.append(text(field->name));
  for (const GradientCall& call : entry.op.gradient) {
    nb::dict values;
    for (const auto& [argument, value] : call.values) values[text(argument)] = text(value);
    gradient.append(nb::make_tuple(text(call.op), values));
  }
  made["name"] = text(entry.op.name);
  made["doc"] = text(entry.op.doc);
  made["about"] = text(notes.about);
  made["example"] = text(example_of(entry));
  made["signature"] = text(entry.signature());
  made["why_not"] = text(entry.why_not);
  made["takes_dim"] = entry.over_dim != nullptr;
  made["inputs"] = inputs;
  made["outputs"] = outputs;
  made["attributes"] = attributes;
  made["gradient"] = gradient;
  made["saved"] = saved;
  constexpr const char* kAutocast[] = {"", "lower", "float32"};
  made["autocast"] = text(kAutocast[size_t(entry.autocast)]);
  return made;
}

}  // namespace heddle::python
