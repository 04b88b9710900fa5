#include "python/src/cases.h"

#include <cstring>
#include <exception>
#include <optional>

#include "heddle/base/error.h"
#include "python/src/arguments.h"
#include "python/src/describe.h"
#include "python/src/fold.h"
#include "python/src/kind.h"
#include "python/src/values.h"

namespace heddle::python {

namespace nb = nanobind;

namespace {

nb::tuple describe_tensor(const Field& field, const std::byte* args) {
  const Tensor& tensor = field.tensor(args);
  nb::list sizes;
  for (int d = 0; d < tensor.rank; ++d) sizes.append(tensor.size[d]);
  bool is_transposed = false;
  if (field.is_matrix()) std::memcpy(&is_transposed, args + field.transposed_at, sizeof is_transposed);
  return nb::make_tuple(nb::str(info_of(tensor.dtype).numpy), sizes, is_transposed);
}

nb::dict describe_case(const OpEntry& entry, const Case& test) {
  nb::dict made, tensors, attributes;
  for (const auto* arguments : {&entry.inputs, &entry.outputs})
    for (const TensorArgument& argument : *arguments)
      if (argument.field->is_tensor() && argument.field->tensor(test.args.data()).rank > 0)
        tensors[nb::str(argument.name.c_str())] = describe_tensor(*argument.field, test.args.data());
  for (const AttributeArgument& attribute : entry.attributes)
    attributes[nb::steal(nb::handle(attribute.key).inc_ref())] =
        attribute_object(*attribute.field, test.args.data());
  made["name"] = nb::str(test.name.c_str());
  made["bound"] = test.bound;
  made["tensors"] = tensors;
  made["attributes"] = attributes;
  return made;
}

}  // namespace

nb::list cases_of(const OpEntry& entry) {
  nb::list made;
  for (const Case& test : entry.op.cases()) made.append(describe_case(entry, test));
  return made;
}

void prepare_case(const OpEntry& entry, size_t number, const nb::dict& tensors) {
  const std::vector<Case> cases = entry.op.cases();
  require(number < cases.size(), "[{}] has {} cases; no number {}", entry.op.name, cases.size(), number);
  Case test = cases[number];
  Kept kept;
  for (const TensorArgument& input : entry.inputs) {
    if (!tensors.contains(input.name.c_str())) continue;
    const nb::object tensor = tensors[input.name.c_str()];
    const Kind* const kind = kind_of(tensor.ptr());
    require(kind != nullptr, "[{}] {} is no tensor", entry.op.name, input.name);
    const View view = kind->read({entry.op.name, input.name}, tensor.ptr(), kept);
    input.field->tensor(test.args.data()).data = static_cast<u8*>(view.data);
  }
  HostValues values;
  if (test.prepare) test.prepare(test.args.data(), values);
}

namespace {

std::optional<DType> dtype_of(nb::handle name) {
  if (name.is_none()) return {};
  const std::string wanted = text_of(name.ptr());
  for (const DTypeInfo& info : kDTypes)
    if (wanted == info.numpy) return info.type;
  fail(ErrorCode::kInvalidArgument, "'{}' is no dtype of heddle", wanted);
}

// The case with other dtypes of its inputs, and without optional ones; nothing where it lacks one.
std::optional<std::vector<std::byte>> with_dtypes(const OpEntry& entry, const Case& test,
                                                  const std::vector<std::optional<DType>>& dtypes) {
  std::vector<std::byte> args = test.args;
  for (size_t i = 0; i < dtypes.size(); ++i) {
    const Field& field = *entry.inputs[i].field;
    Tensor& tensor = field.tensor(args.data());
    if (!dtypes[i] && field.optional) tensor = Tensor();
    if ((tensor.rank > 0) != dtypes[i].has_value()) return {};
    if (dtypes[i]) tensor.dtype = *dtypes[i];
  }
  for (const TensorArgument& output : entry.outputs) {
    Tensor& tensor = output.field->tensor(args.data());
    // Some outputs have sizes that only the caller knows, in one dtype.
    if (output.field->dtypes.size() > 1) tensor = Tensor();
  }
  return args;
}

}  // namespace

nb::list output_dtypes(const OpEntry& entry, const nb::list& inputs, const nb::dict& choices) {
  std::vector<std::optional<DType>> dtypes;
  for (const nb::handle input : inputs) dtypes.push_back(dtype_of(input));
  require(dtypes.size() == entry.inputs.size(), "[{}] has {} inputs, not {}", entry.op.name,
          entry.inputs.size(), dtypes.size());
  std::exception_ptr refusal;
  for (const Case& test : entry.op.cases()) {
    auto args = with_dtypes(entry, test, dtypes);
    if (!args) continue;
    try {
      for (const auto& [name, value] : choices)
        set_attribute(entry.op.name, *find_field(entry.op.fields, text_of(name.ptr())), args->data(),
                      text_of(value.ptr()));
      const CheckedCall call = check_call(entry.op, args->data());
      nb::list made;
      for (const TensorArgument& output : entry.outputs)
        if (!output.field->optional)
          made.append(nb::str(info_of(output.field->tensor(call.args.data()).dtype).numpy));
      return made;
    } catch (const Error&) {
      refusal = std::current_exception();
    }
  }
  if (refusal) std::rethrow_exception(refusal);
  fail(ErrorCode::kInvalidArgument, "[{}] takes no such set of tensors", entry.op.name);
}

nb::list output_forms(const OpEntry& entry, const nb::list& inputs, const nb::dict& attributes) {
  std::vector<std::byte> args = entry.op.defaults;
  for (const auto& [key, value] : attributes) {
    const std::string name = text_of(key.ptr());
    set_attribute(entry.op.name, *find_field(entry.op.fields, name), args.data(),
                  attribute_value({entry.op.name, name}, value.ptr()));
  }
  require(inputs.size() == entry.inputs.size(), "[{}] has {} inputs, not {}", entry.op.name,
          entry.inputs.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_none()) continue;
    std::vector<i64> sizes, strides;
    for (const nb::handle size : inputs[i][1]) sizes.push_back(nb::cast<i64>(size));
    for (const nb::handle stride : inputs[i][2]) strides.push_back(nb::cast<i64>(stride));
    View view{.dtype = *dtype_of(inputs[i][0]),
              .size = sizes,
              .stride = strides,
              .place = {MemoryPlace::Kind::kHost, 0}};
    Folded folded = fold(entry, entry.inputs[i], view);
    if (!folded.lies_as_rows)
      view.stride = {}, folded = fold(entry, entry.inputs[i], view);  // a copy is dense
    bind_tensor(entry, entry.inputs[i], folded, view, view.place, args.data());
  }
  const CheckedCall call = check_call(entry.op, args.data());
  nb::list made;
  for (const TensorArgument& output : entry.outputs) {
    if (output.field->optional) continue;
    const Tensor& tensor = output.field->tensor(call.args.data());
    nb::list sizes;
    for (int d = 0; d < tensor.rank; ++d) sizes.append(tensor.size[d]);
    made.append(nb::make_tuple(nb::str(info_of(tensor.dtype).numpy), sizes));
  }
  return made;
}

}  // namespace heddle::python
