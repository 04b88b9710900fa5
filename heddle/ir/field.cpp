#include "heddle/ir/field.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "heddle/base/error.h"
#include "heddle/ir/shape.h"

namespace heddle {
namespace {

std::string_view trim(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// The parts of "a, b", without the spaces around them.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    if (const auto part = trim(text.substr(at, end - at)); !part.empty()) parts.push_back(part);
    at = end + 1;
  }
  return parts;
}

// Size and alignment of the field inside the arguments.
template <class F>
auto with_type(const Field& field, F&& f) {
  if (field.is_tensor()) return f(Tensor{});
  if (field.is_weight()) return f(Weight{});
  switch (field.type) {
    case AttributeType::kI64:
      return f(i64{});
    case AttributeType::kFloat:
      return f(float{});
    case AttributeType::kBool:
      return f(bool{});
    default:
      return f(i32{});
  }
}

const char* name(AttributeType type) {
  switch (type) {
    case AttributeType::kI64:
      return "a whole number of 64 bits";
    case AttributeType::kFloat:
      return "a number";
    case AttributeType::kBool:
      return "true or false";
    case AttributeType::kChoice:
      return "a name";
    default:
      return "a whole number of 32 bits";
  }
}

std::string text_of(const AttributeValue& value) {
  return std::visit(
      [](const auto& held) {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::string>)
          return fmt::format("\"{}\"", held);
        else
          return fmt::format("{}", held);
      },
      value);
}

[[noreturn]] void refuse(std::string_view op, const Field& field, const std::string& value) {
  if (field.type == AttributeType::kChoice)
    fail(ErrorCode::kInvalidArgument, "[{}] {} = {}; must be one of {}", op, field.name, value,
         fmt::join(field.choices, ", "));
  fail(ErrorCode::kInvalidArgument, "[{}] {} = {}; must be {}", op, field.name, value, name(field.type));
}

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

std::vector<FieldDim> parse_dims(std::string_view text) {
  std::vector<FieldDim> dims;
  for (std::string_view part : split(text, ',')) {
    FieldDim dim;
    const size_t digits = std::min(part.find_first_not_of("0123456789"), part.size());
    if (digits > 0)
      require(parse_number(part.substr(0, digits), dim.scale) && dim.scale > 0 && digits < part.size(),
              "[dims] \"{}\" in \"{}\"; must be a name, after a positive number where it is a multiple", part,
              text);
    dim.name = part.substr(digits);
    dims.push_back(std::move(dim));
  }
  return dims;
}

std::vector<DType> parse_dtypes(std::string_view text) {
  std::vector<DType> dtypes;
  for (std::string_view part : split(text, '|')) {
    const size_t before = dtypes.size();
    for (int i = 0; i < kNumDTypes; ++i)
      if (const auto dtype = DType(i); part == name(dtype) || (part == "float" && is_wide_float(dtype)))
        dtypes.push_back(dtype);
    require(dtypes.size() > before, "[dtypes] \"{}\" in \"{}\"; must be float or the name of a dtype", part,
            text);
  }
  require(!dtypes.empty(), "[dtypes] \"{}\" names none; must name at least one", text);
  return dtypes;
}

std::vector<std::string> parse_choices(std::string_view text) {
  const auto parts = split(text, ',');
  return {parts.begin(), parts.end()};
}

bool Field::allows(DType dtype) const {
  return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

size_t Field::size() const {
  return with_type(*this, [](auto value) { return sizeof value; });
}

size_t Field::alignment() const {
  return with_type(*this, [](auto value) { return alignof(decltype(value)); });
}

AttributeValue get_attribute(const Field& field, const std::byte* args) {
  return field.with_attribute(args, [&]<class T>(const T& value) -> AttributeValue {
    if constexpr (std::is_same_v<T, bool>)
      return value;
    else if constexpr (std::is_same_v<T, float>)
      return double(value);
    else if (field.type == AttributeType::kChoice && value >= 0 && size_t(value) < field.choices.size())
      return field.choices[size_t(value)];
    else
      return i64(value);
  });
}

std::string attribute_text(const Field& field, const std::byte* args) {
  return field.with_attribute(args, [&](const auto& value) {
    const AttributeValue held = get_attribute(field, args);
    const auto* chosen = std::get_if<std::string>(&held);
    return chosen ? *chosen : fmt::format("{}", value);
  });
}

void set_attribute(std::string_view op, const Field& field, std::byte* args, const AttributeValue& value) {
  const auto* truth = std::get_if<bool>(&value);
  const auto* whole = std::get_if<i64>(&value);
  const auto* number = std::get_if<double>(&value);
  const auto* text = std::get_if<std::string>(&value);
  field.with_attribute(args, [&]<class T>(T& to) {
    if constexpr (std::is_same_v<T, bool>) {
      if (truth) return void(to = *truth);
    } else if constexpr (std::is_same_v<T, float>) {
      const double wanted = number ? *number : whole ? double(*whole) : 0;
      constexpr double kMost = std::numeric_limits<float>::max();
      if ((number || whole) && !(std::isfinite(wanted) && std::abs(wanted) > kMost))
        return void(to = float(wanted));
    } else if (field.type == AttributeType::kChoice) {
      const auto found =
          text ? std::find(field.choices.begin(), field.choices.end(), *text) : field.choices.end();
      if (found != field.choices.end()) return void(to = T(found - field.choices.begin()));
    } else if (whole && *whole >= std::numeric_limits<T>::min() && *whole <= std::numeric_limits<T>::max()) {
      return void(to = T(*whole));
    }
    refuse(op, field, text_of(value));
  });
}

void parse_attribute(std::string_view op, const Field& field, std::byte* args, std::string_view text) {
  AttributeValue value = std::string(text);
  i64 whole = 0;
  double number = 0;
  if (field.type == AttributeType::kBool && (text == "true" || text == "false"))
    value = text == "true";
  else if (field.type != AttributeType::kChoice && parse_number(text, whole))
    value = whole;
  else if (field.type == AttributeType::kFloat && parse_number(text, number))
    value = number;
  set_attribute(op, field, args, value);
}

std::vector<FieldDim> Field::dims_of(const std::byte* args) const {
  std::vector<FieldDim> stored = dims;
  if (is_matrix() && *reinterpret_cast<const bool*>(args + transposed_at))
    std::swap(stored[stored.size() - 2], stored.back());
  return stored;
}

const Field* find_field(const std::vector<Field>& fields, std::string_view name) {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

void require_dtypes(std::string_view op, const std::vector<Field>& fields, const std::byte* args) {
  for (const Field& field : fields) {
    if (field.is_attribute()) continue;
    const Tensor& tensor = field.elements(args);
    if (tensor.rank == 0 || field.allows(tensor.dtype)) continue;
    std::vector<std::string> names;
    for (DType dtype : field.dtypes) names.emplace_back(name(dtype));
    fail(ErrorCode::kInvalidArgument, "[{}] {} is {}; must be {}", op, field.name, shape_text(tensor),
         fmt::join(names, " or "));
  }
}

Field tensor_field(std::string name, Access access, std::string dims, std::string_view dtypes) {
  Field field;
  field.name = field.member = std::move(name);
  field.access = access;
  field.dims = parse_dims(dims);
  field.dims_text = std::move(dims);
  field.dtypes = parse_dtypes(dtypes);
  return field;
}

Field attribute_field(std::string name, AttributeType type, std::vector<std::string> choices) {
  Field field;
  field.name = field.member = std::move(name);
  field.kind = FieldKind::kAttribute;
  field.type = type;
  field.choices = std::move(choices);
  return field;
}

std::vector<std::byte> lay_out(std::vector<Field>& fields) {
  size_t end = 0, alignment = 1;
  bool in_matrix = false;
  for (Field& field : fields) {
    if (std::exchange(in_matrix, !field.is_whole()) && field.is_whole())  // the struct Matrix ends before it
      end = (end + alignof(Matrix) - 1) / alignof(Matrix) * alignof(Matrix);
    field.offset = (end + field.alignment() - 1) / field.alignment() * field.alignment();
    end = field.offset + field.size();
    alignment = std::max(alignment, field.alignment());
  }
  for (Field& field : fields)
    if (const Field* turned = find_field(fields, field.name + ".transposed"))
      field.transposed_at = i64(turned->offset);
  std::vector<std::byte> args((end + alignment - 1) / alignment * alignment);
  for (const Field& field : fields)
    with_type(field, [&](auto value) { new (args.data() + field.offset) auto(value); });
  find_attribute_dims(fields);
  return args;
}

void find_attribute_dims(std::vector<Field>& fields) {
  for (Field& field : fields)
    for (FieldDim& dim : field.dims) {
      const Field* named = find_field(fields, dim.name);
      dim.is_attribute = named && named->is_attribute();
    }
}

Field& FieldList::add(const char* name, const void* value, FieldKind kind) {
  Field& field = fields_.emplace_back();
  field.name = field.member = name;
  field.kind = kind;
  field.offset = size_t(static_cast<const std::byte*>(value) - static_cast<const std::byte*>(args_));
  return field;
}

void FieldList::add_tensor(const char* name, const Tensor& value, const char* dims, const char* dtypes,
                           Access access, bool optional) {
  Field& field = add(name, &value, FieldKind::kTensor);
  field.access = access;
  field.optional = optional;
  field.dims_text = dims;
  field.dims = parse_dims(dims);
  field.dtypes = parse_dtypes(dtypes);
}

void FieldList::weight(const char* name, const Weight& value, const char* dims, const char* dtypes) {
  Field& field = add(name, &value, FieldKind::kWeight);
  field.dims_text = dims;
  field.dims = parse_dims(dims);
  field.dtypes = parse_dtypes(dtypes);
}

void FieldList::matrix(const char* name, const Matrix& value, const char* dims, const char* dtypes) {
  const std::string of = name;
  add_tensor(name, value.data, dims, dtypes, Access::kRead, false);
  fields_.back().member = of + ".data";
  fields_.back().transposed_at =
      reinterpret_cast<const std::byte*>(&value.transposed) - static_cast<const std::byte*>(args_);
  add_tensor((of + ".scales").c_str(), value.scales, "., .", "f32", Access::kRead, true);
  add_tensor((of + ".zeros").c_str(), value.zeros, "., .", "f32", Access::kRead, true);
  attribute((of + ".transposed").c_str(), value.transposed);
}

void FieldList::add_attribute(const char* name, const void* value, AttributeType type) {
  add(name, value, FieldKind::kAttribute).type = type;
}

void FieldList::choice(const char* name, const i32& value, const char* names) {
  Field& field = add(name, &value, FieldKind::kAttribute);
  field.type = AttributeType::kChoice;
  field.choices = parse_choices(names);
}

}  // namespace heddle
