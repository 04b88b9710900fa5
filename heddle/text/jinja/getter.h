// Reads the attribute of items that filters such as map and sort name.
#pragma once

#include <vector>

#include "heddle/text/jinja/value.h"

namespace heddle::jinja {

// Reads `attribute="a.b.0"` from each item. Without an attribute it returns the item.
class Getter {
 public:
  Getter(Budget& budget, const Value* attribute);
  // `fallback` stands for a part that is undefined, unless it is null or none.
  Value operator()(Value item, const Value* fallback = nullptr) const;

 private:
  Budget& budget_;
  std::vector<Value> parts_;
};

// In small letters, unless the case counts or it is no string.
Value without_case(Budget& budget, const Value& value, bool case_sensitive);

}  // namespace heddle::jinja
