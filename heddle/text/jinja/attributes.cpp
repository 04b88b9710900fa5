#include "heddle/text/jinja/attributes.h"

#include "heddle/text/jinja/ast.h"
#include "heddle/text/jinja/integer.h"

namespace heddle::jinja {
namespace {

std::optional<Value> attribute_of_number(const Value& value, std::string_view name) {
  const bool is_float = value.is(Kind::kFloat);
  if (name == "real") return is_float ? value : integer_from_digits(digits_of(value));
  if (name == "imag") return is_float ? Value(0.0) : Value(int64_t{0});
  if (is_float) return std::nullopt;
  if (name == "numerator") return integer_from_digits(digits_of(value));
  if (name == "denominator") return Value(int64_t{1});
  return std::nullopt;
}

std::optional<Value> attribute_of_sequence(const Sequence& sequence, std::string_view name) {
  if (sequence.flavor == Sequence::kRange) {
    if (name == "start") return Value(sequence.range.begin);
    if (name == "stop") return Value(sequence.range.end);
    if (name == "step") return Value(sequence.range.step);
  }
  if (sequence.is_group && (name == "grouper" || name == "list")) return sequence.items[name == "list"];
  return std::nullopt;
}

std::optional<Value> attribute_of_macro(const MacroStatement& macro, std::string_view name) {
  if (name == "name") return macro.name.empty() ? Value::none() : Value(macro.name);
  if (name == "catch_kwargs") return Value(macro.takes_kwargs);
  if (name == "catch_varargs") return Value(macro.takes_varargs);
  if (name == "caller") return Value(macro.takes_caller);
  if (name != "arguments") return std::nullopt;
  std::vector<Value> names;
  for (const auto& parameter : macro.parameters) names.emplace_back(parameter.name);
  return make_sequence(std::move(names), Sequence::kTuple);
}

}  // namespace

std::optional<Value> plain_attribute(const Value& value, std::string_view name) {
  if (value.is_number()) return attribute_of_number(value, name);
  if (value.is(Kind::kSequence)) return attribute_of_sequence(value.as_sequence(), name);
  if (value.is(Kind::kCallable) && value.as_callable().macro)
    return attribute_of_macro(*value.as_callable().macro, name);
  if (value.is(Kind::kCallable) && value.as_callable().name == "dict" && name == "fromkeys")
    return Value(std::make_shared<const Callable>(Callable{.name = "fromkeys", .self = make_dict({})}));
  if (value.is(Kind::kCycler) && !value.as_cycler().is_joiner && name == "current") {
    const Cycler& cycler = value.as_cycler();
    return cycler.items[cycler.at];
  }
  return std::nullopt;
}

}  // namespace heddle::jinja
