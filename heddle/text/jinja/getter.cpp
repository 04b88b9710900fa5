#include "heddle/text/jinja/getter.h"

#include "heddle/text/jinja/access.h"
#include "heddle/text/jinja/integer.h"
#include "heddle/text/jinja/python_text.h"

namespace heddle::jinja {

Getter::Getter(Budget& budget, const Value* attribute) : budget_(budget) {
  if (!attribute || attribute->is(Kind::kNone)) return;
  if (!attribute->is(Kind::kString)) {
    parts_.push_back(*attribute);
    return;
  }
  for (std::string_view part : split(attribute->as_string(), ".", -1)) {
    const bool digits = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    parts_.push_back(digits ? integer_from_digits(part) : Value(part));
  }
}

Value Getter::operator()(Value item, const Value* fallback) const {
  for (const Value& part : parts_) {
    item = item_of(budget_, item, part);
    if (fallback && !fallback->is(Kind::kNone) && item.is(Kind::kUndefined)) item = *fallback;
  }
  return item;
}

Value without_case(Budget& budget, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is(Kind::kString)) return value;
  budget.spend(value.as_string().size());
  return Value(lower(value.as_string()));
}

}  // namespace heddle::jinja
