// Reads values for a template: attributes, items and slices.
#pragma once

#include <optional>
#include <string_view>

#include "heddle/text/jinja/arguments.h"

namespace heddle::jinja {

// value.name and value[key]; undefined if there is none.
Value attribute_of(const Value& value, std::string_view name);
// value.name if Python has such an attribute, whatever the keys of a dict are.
Value own_attribute_of(const Value& value, std::string_view name);
Value item_of(Budget& budget, const Value& value, const Value& key);

struct Slice {
  std::optional<int64_t> begin, end, step;
};
Value slice_of(Budget& budget, const Value& value, const Slice& slice);

}  // namespace heddle::jinja
