// str() and repr() of values.
#include <fmt/format.h>

#include "heddle/text/jinja/integer.h"
#include "heddle/text/jinja/python_text.h"
#include "heddle/text/jinja/value.h"

namespace heddle::jinja {
namespace {

std::string joined(Budget& budget, const std::vector<Value>& items) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += ", ";
    text += to_repr(budget, items[i]);
  }
  return text;
}

std::string repr_of_sequence(Budget& budget, const Sequence& sequence) {
  const auto& [begin, end, step] = sequence.range;
  switch (sequence.flavor) {
    case Sequence::kList:
      return fmt::format("[{}]", joined(budget, sequence.items));
    case Sequence::kTuple:
      return fmt::format("({}{})", joined(budget, sequence.items), sequence.items.size() == 1 ? "," : "");
    case Sequence::kRange:
      return step == 1 ? fmt::format("range({}, {})", begin, end)
                       : fmt::format("range({}, {}, {})", begin, end, step);
    case Sequence::kKeys:
      return fmt::format("dict_keys([{}])", joined(budget, sequence.items));
    case Sequence::kValues:
      return fmt::format("dict_values([{}])", joined(budget, sequence.items));
    case Sequence::kItems:
      return fmt::format("dict_items([{}])", joined(budget, sequence.items));
    case Sequence::kGenerator:
      break;
  }
  fail(ErrorCode::kUnsupported, "a generator cannot be written as text; put `| list` after it");
}

template <class Items>
std::string repr_of_items(Budget& budget, const Items& items) {
  std::string text = "{";
  for (const auto& [key, value] : items) {
    if (text.size() > 1) text += ", ";
    if constexpr (std::is_same_v<decltype(key), const Value>) {
      text += to_repr(budget, key);
    } else {
      text += repr(key);
    }
    text += ": " + to_repr(budget, value);
  }
  return text + "}";
}

}  // namespace

std::string to_text(Budget& budget, const Value& value) {
  if (value.is(Kind::kString)) {
    budget.spend(value.as_string().size());
    return value.as_string();
  }
  return value.is(Kind::kUndefined) ? std::string() : to_repr(budget, value);
}

std::string to_repr(Budget& budget, const Value& value) {
  budget.spend(Budget::kItem);
  switch (value.kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.as_bool() ? "True" : "False";
    case Kind::kInt:
    case Kind::kBigInt: {
      std::string digits = digits_of(value);
      budget.spend(digits.size());
      return digits;
    }
    case Kind::kFloat:
      return repr(value.as_float());
    case Kind::kString: {
      budget.spend(value.as_string().size());
      std::string text = repr(value.as_string());
      return value.is_safe() ? fmt::format("Markup({})", text) : text;
    }
    case Kind::kSequence:
      return repr_of_sequence(budget, value.as_sequence());
    case Kind::kDict:
      return repr_of_items(budget, value.as_dict().items);
    case Kind::kNamespace:
      return fmt::format("<Namespace {}>", repr_of_items(budget, value.as_namespace().items));
    case Kind::kLoop:
      return fmt::format("<LoopContext {}/{}>", value.as_loop().index0 + 1, value.as_loop().items.size());
    case Kind::kCallable:
      if (value.as_callable().macro) {
        const std::string& name = value.as_callable().name;
        return name.empty() ? "<Macro anonymous>" : fmt::format("<Macro {}>", repr(name));
      }
      break;
    case Kind::kCycler:
      break;
  }
  fail(ErrorCode::kUnsupported, "{} cannot be written as text", describe(value));
}

}  // namespace heddle::jinja
