#include "python/src/document.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "heddle/backend/cuda/compiler/sources.h"
#include "heddle/ir/registry.h"
#include "heddle/ir/shape.h"

namespace heddle::python {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

// "  float eps = 1e-5f;  // added" is {"eps", "added"}; nothing for a line that declares nothing.
std::optional<std::pair<std::string_view, std::string_view>> declared(std::string_view line) {
  const size_t end = line.find(';'), comment = line.find("  // ");
  if (end == line.npos || comment == line.npos || comment < end || line.find('(') < end) return {};
  const std::string_view statement = trimmed(line.substr(0, std::min(end, line.find(" = "))));
  const size_t name = statement.rfind(' ');
  if (name == statement.npos) return {};
  return {{statement.substr(name + 1), line.substr(comment + 5)}};
}

std::string numpy_names(const std::vector<DType>& dtypes) {
  std::string text;
  for (size_t i = 0; i < dtypes.size(); ++i)
    text += fmt::format("{}{}",
                        i == 0                   ? ""
                        : i + 1 == dtypes.size() ? " or "
                                                 : ", ",
                        info_of(dtypes[i]).numpy);
  return text;
}

// Returns a header's words about a tensor, without its dtype, which is said anyway: "[M, N]: the mean of
// gradients".
std::string tensor_note(const Field& field, const Notes& notes) {
  const auto found = notes.of.find(field.member.substr(0, field.member.find('.')));
  const std::string_view note = found == notes.of.end() ? "" : std::string_view(found->second);
  const size_t shape = note.find('[');
  const bool is_part = field.name.find('.') != std::string::npos;
  if (is_part || shape == note.npos) return fmt::format("[{}]", field.dims_text);
  return std::string(note.substr(shape));
}

std::string tensor_line(const TensorArgument& argument, const Notes& notes) {
  const Field& field = *argument.field;
  return fmt::format("    {}: {}{}; {}\n", argument.name, field.optional ? "optional " : "",
                     tensor_note(field, notes), numpy_names(field.dtypes));
}

std::string attribute_line(const AttributeArgument& attribute, const OpEntry& entry, const Notes& notes) {
  constexpr const char* kTypes[] = {"int", "int", "float", "bool", "one of "};  // by AttributeType
  const Field& field = *attribute.field;
  std::string valid = kTypes[int(field.type)];
  if (field.type == AttributeType::kChoice) valid += fmt::format("'{}'", fmt::join(field.choices, "', '"));
  const std::string value =
      attribute.required ? "" : " = " + value_text(*attribute.field, entry.op.defaults.data());
  const auto found = notes.of.find(field.name);
  return fmt::format("    {}{}: {}{}{}\n", field.name, value, valid, found == notes.of.end() ? "" : "; ",
                     found == notes.of.end() ? "" : found->second);
}

// The inputs that have a gradient.
std::vector<std::string> differentiable(const OpEntry& entry) {
  std::set<std::string, std::less<>> written;
  for (const GradientCall& call : entry.op.gradient)
    if (const OpSpec* const op = find_op(call.op))
      for (const Field& field : op->fields)
        if (field.writes()) written.emplace(call.value_of(field.name));
  std::vector<std::string> names;
  for (const TensorArgument& input : entry.inputs)
    if (written.contains("d" + input.field->name)) names.push_back(input.name);
  return names;
}

bool is_transposed(const Field& field, const std::byte* args) {
  bool transposed = false;
  if (field.is_matrix()) std::memcpy(&transposed, args + field.transposed_at, sizeof transposed);
  return transposed;
}

// A case that is shown: of floats of 32 bits if there is one, with few optional tensors, and small.
const Case* shown_case(const OpEntry& entry, const std::vector<Case>& cases) {
  const Case* best = nullptr;
  i64 least = 0;
  for (const Case& test : cases) {
    i64 cost = 0;
    bool is_small = true;
    for (const TensorArgument& input : entry.inputs) {
      const Tensor& tensor = input.field->tensor(test.args.data());
      if (tensor.rank == 0) continue;
      cost += elements(tensor) + (input.field->optional ? 1 << 20 : 0);
      if (is_wide_float(tensor.dtype) && tensor.dtype != DType::kF32) cost += 1 << 16;
      is_small &= tensor.dtype != DType::kI4;
      if (is_transposed(*input.field, test.args.data())) cost += 1 << 16;
      for (int d = 0; d < tensor.rank; ++d) cost += tensor.size[d] == 1 ? 1 << 10 : 0;
    }
    if (is_small && (!best || cost < least)) best = &test, least = cost;
  }
  return best;
}

// turned: a matrix whose columns lie side by side.
std::string tensor_text(const Tensor& tensor, bool turned) {
  std::vector<i32> sizes(tensor.size, tensor.size + tensor.rank);
  const std::string shape = fmt::format("{}", fmt::join(sizes, ", "));
  const std::string_view dtype = info_of(tensor.dtype).numpy;
  std::string text;
  if (!is_float(tensor.dtype))
    text = fmt::format("torch.zeros({}, dtype=torch.{})", shape, dtype);
  else if (tensor.dtype == DType::kF32)
    text = fmt::format("torch.randn({})", shape);
  else
    text = fmt::format("torch.randn({}).to(torch.{})", shape, dtype);
  return turned ? text + ".mT" : text;
}

}  // namespace

Notes read_notes(std::string_view header) {
  Notes notes;
  bool is_head = true;
  std::string* last = nullptr;
  for (size_t begin = 0; begin < header.size();) {
    const size_t end = std::min(header.find('\n', begin), header.size());
    const std::string_view line = header.substr(begin, end - begin);
    begin = end + 1;
    if (is_head && line.starts_with("//")) {
      notes.about +=
          fmt::format("{}{}", notes.about.empty() ? "" : "\n", line.substr(std::min<size_t>(3, line.size())));
    } else if (const auto found = declared(line)) {
      last = &notes.of.try_emplace(std::string(found->first), found->second).first->second;
    } else if (last && trimmed(line).starts_with("// ")) {
      *last += fmt::format(" {}", trimmed(line).substr(3));
    } else {
      last = nullptr;
    }
    is_head = is_head && line.starts_with("//");
  }
  return notes;
}

Notes notes_of(const OpSpec& op) {
  const std::string_view path = cuda::op_source(op.name, ".h");
  for (const EmbeddedFile& file : cuda::device_sources())
    if (!path.empty() && file.path == path) return read_notes(file.text);
  return {};
}

std::string example_of(const OpEntry& entry) {
  if (!entry.why_not.empty() || !entry.op.cases || entry.op.text) return "";
  const std::vector<Case> cases = entry.op.cases();
  const Case* const shown = shown_case(entry, cases);
  if (!shown) return "";
  std::string lines, arguments, results, outs;
  const auto add = [](std::string& list, const std::string& more) {
    list += (list.empty() ? "" : ", ") + more;
  };
  for (const TensorArgument& input : entry.inputs) {
    const Tensor& tensor = input.field->tensor(shown->args.data());
    if (tensor.rank == 0) continue;
    lines += fmt::format("    >>> {} = {}\n", input.name,
                         tensor_text(tensor, is_transposed(*input.field, shown->args.data())));
    add(arguments, input.field->optional ? fmt::format("{0}={0}", input.name) : input.name);
  }
  for (const AttributeArgument& attribute : entry.attributes) {
    const std::string value = value_text(*attribute.field, shown->args.data());
    if (attribute.required || value != value_text(*attribute.field, entry.op.defaults.data()))
      add(arguments, attribute.field->name + "=" + value);
  }
  bool has_out = false;
  for (const TensorArgument& output : entry.outputs) {
    if (output.field->optional) continue;
    const Tensor& tensor = output.field->tensor(shown->args.data());
    add(results, output.name);
    add(outs, tensor.rank == 0 ? "None" : tensor_text(tensor, false));
    has_out |= tensor.rank > 0;
  }
  if (has_out) add(arguments, outs.find(", ") == outs.npos ? "out=" + outs : "out=(" + outs + ",)");
  return fmt::format("    >>> import heddle.ops, torch\n{}    >>> {} = heddle.ops.{}({})\n", lines, results,
                     entry.op.name, arguments);
}

std::string document_of(const OpEntry& entry) {
  const Notes notes = notes_of(entry.op);
  std::string text = entry.op.doc + "\n";
  if (!entry.why_not.empty()) text += fmt::format("\nThis op {}.\n", entry.why_not);
  if (!notes.about.empty()) text += "\n" + notes.about + "\n";
  text += "\nInputs:\n";
  for (const TensorArgument& input : entry.inputs) text += tensor_line(input, notes);
  text += "Outputs:\n";
  for (const TensorArgument& output : entry.outputs) text += tensor_line(output, notes);
  if (!entry.attributes.empty()) text += "Attributes:\n";
  for (const AttributeArgument& attribute : entry.attributes) text += attribute_line(attribute, entry, notes);
  if (!entry.why_not.empty()) return text;
  const std::vector<std::string> with_gradient = differentiable(entry);
  text += with_gradient.empty() ? "Gradient: none.\n"
                                : fmt::format("Gradient: of {}.\n", fmt::join(with_gradient, ", "));
  for (const TensorArgument& input : entry.inputs)
    if (input.lead >= 0) {
      text += fmt::format("{} may be any number of leading dimensions.\n", input.field->dims[0].name);
      break;
    }
  const std::string example = example_of(entry);
  if (!example.empty()) text += "Example:\n" + example;
  return text + "\nRaises heddle.InvalidArgument for other dtypes, sizes, strides or attributes.";
}

}  // namespace heddle::python
