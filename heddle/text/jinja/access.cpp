#include "heddle/text/jinja/access.h"

#include <algorithm>

#include "heddle/text/jinja/attributes.h"
#include "heddle/text/jinja/markup.h"
#include "heddle/text/jinja/methods.h"
#include "heddle/text/jinja/python_text.h"

namespace heddle::jinja {
namespace {

Value missing(const Value& value, std::string_view name) {
  return Value::undefined(fmt::format("{} has no '{}'", describe(value), name));
}

Value neighbour(const Loop& loop, int64_t offset) {
  const int64_t at = loop.index0 + offset;
  if (at < 0 || at >= int64_t(loop.items.size()))
    return Value::undefined("there is no such item of the loop");
  return loop.items[size_t(at)];
}

Value attribute_of_loop(const Value& value, std::string_view name) {
  const Loop& loop = value.as_loop();
  const auto size = int64_t(loop.items.size());
  if (name == "index") return Value(loop.index0 + 1);
  if (name == "index0") return Value(loop.index0);
  if (name == "revindex") return Value(size - loop.index0);
  if (name == "revindex0") return Value(size - loop.index0 - 1);
  if (name == "first") return Value(loop.index0 == 0);
  if (name == "last") return Value(loop.index0 + 1 == size);
  if (name == "length") return Value(size);
  if (name == "depth") return Value(loop.depth0 + 1);
  if (name == "depth0") return Value(loop.depth0);
  if (name == "previtem") return neighbour(loop, -1);
  if (name == "nextitem") return neighbour(loop, 1);
  return missing(value, name);
}

Value missing_member(const Value& value, std::string_view name) {
  if (value.is(Kind::kCallable) && !value.as_callable().macro) {
    fail(ErrorCode::kUnsupported, "the attribute '{}' of {} is not supported", name, describe(value));
  }
  return missing(value, name);
}

// Names win where Python looks for a name first, keys where it looks for a key first.
Value member_of(const Value& value, std::string_view name, bool method_first) {
  require_defined(value);
  // The sandbox hides such names of Python's own; a key may have one, but only x['__name'] finds it.
  if (name.starts_with("__") && (method_first || !value.is(Kind::kDict)))
    return Value::undefined(fmt::format("the attribute '{}' is not for templates", name));
  const Value* found = value.is(Kind::kDict) ? value.as_dict().find(name) : nullptr;
  if (value.is(Kind::kNamespace)) found = value.as_namespace().find(name);
  if (found && !method_first) return *found;
  if (has_method(value, name)) {
    return Value(std::make_shared<const Callable>(Callable{.name = std::string(name), .self = value}));
  }
  if (found) return *found;
  if (value.is(Kind::kLoop)) return attribute_of_loop(value, name);
  if (const auto attribute = plain_attribute(value, name)) return *attribute;
  return missing_member(value, name);
}

// Resolves an index that may count from the end; nothing if it is outside.
std::optional<size_t> place_in(size_t size, int64_t index) {
  if (index < 0) index += int64_t(size);
  return index >= 0 && index < int64_t(size) ? std::optional(size_t(index)) : std::nullopt;
}

// The first index that Python's slice takes of `size` items, and the one where it ends.
std::pair<int64_t, int64_t> bounds_of(const Slice& slice, size_t size) {
  const int64_t step = slice.step.value_or(1), count = int64_t(size);
  require(step != 0, "a slice with a step of 0");
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? count : count - 1;
  const auto place = [&](std::optional<int64_t> index, int64_t fallback) {
    if (!index) return fallback;
    return std::clamp(*index < 0 ? std::max(*index, -count - 1) + count : *index, low, high);
  };
  return {place(slice.begin, step > 0 ? low : high), place(slice.end, step > 0 ? high : low)};
}

std::vector<size_t> indices_of(const Slice& slice, size_t size) {
  const auto [begin, end] = bounds_of(slice, size);
  const int64_t step = slice.step.value_or(1);
  std::vector<size_t> indices;
  // The step is compared before it is added, because it may be as large as a number can be.
  for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
    indices.push_back(size_t(i));
    if (step > 0 ? step >= end - i : step <= end - i) break;
  }
  return indices;
}

}  // namespace

Value attribute_of(const Value& value, std::string_view name) {
  return member_of(value, name, !value.is(Kind::kNamespace));
}

Value own_attribute_of(const Value& value, std::string_view name) {
  if (value.is(Kind::kDict) && !has_method(value, name)) return missing(value, name);
  return attribute_of(value, name);
}

Value item_of(Budget& budget, const Value& value, const Value& key) {
  require_defined(value);
  if (value.is(Kind::kDict)) {
    if (const Value* found = value.as_dict().find(budget, key)) return *found;
  }
  if (key.is(Kind::kString)) return member_of(value, key.as_string(), false);
  if (key.is_integer() && value.is(Kind::kSequence) && !value.as_sequence().is_view() &&
      value.as_sequence().flavor != Sequence::kGenerator) {
    const auto& items = value.as_sequence().items;
    if (const auto place = place_in(items.size(), key.as_int())) return items[*place];
  }
  if (key.is_integer() && value.is(Kind::kString)) {
    budget.spend(value.as_string().size() * 8);
    const auto all = characters(value.as_string());
    if (const auto place = place_in(all.size(), key.as_int())) return safe_like(value, Value(all[*place]));
  }
  return missing(value, to_text(budget, key));
}

Value slice_of(Budget& budget, const Value& value, const Slice& slice) {
  require_defined(value);
  if (value.is(Kind::kString)) {
    budget.spend(value.as_string().size() * 8);
    const auto all = characters(value.as_string());
    std::string text;
    for (size_t i : indices_of(slice, all.size())) text += all[i];
    return safe_like(value, Value(std::move(text)));
  }
  const bool sliced = value.is(Kind::kSequence) &&
                      (value.as_sequence().is_list() || value.as_sequence().flavor == Sequence::kRange);
  require(sliced, "a slice of {}; a list or a string is expected", describe(value));
  const Sequence& sequence = value.as_sequence();
  std::vector<Value> items;
  budget.spend(Budget::kItem * sequence.items.size());
  for (size_t i : indices_of(slice, sequence.items.size())) items.push_back(sequence.items[i]);
  if (sequence.flavor != Sequence::kRange) return make_sequence(std::move(items), sequence.flavor);
  const Sequence::Range& range = sequence.range;
  const int64_t step = slice.step.value_or(1);
  const auto [begin, end] = bounds_of(slice, sequence.items.size());
  return make_range({range.begin + begin * range.step, range.begin + end * range.step, range.step * step},
                    std::move(items));
}

}  // namespace heddle::jinja
