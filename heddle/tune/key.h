// The key of a choice: an op, facts of its operands such as dtype and layout, and classes of its sizes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/base/types.h"

namespace heddle::tune {

// Says which sizes of a dimension share a configuration.
class SizeClasses {
 public:
  static SizeClasses exact();   // each size is a class of its own
  static SizeClasses powers();  // sizes up to the next power of two: 513..1024
  // A class has the sizes above one of these and up to the next. `lasts` ascend from 0 or more: 8, 64 makes
  // 0..8, 9..64 and 65...
  static SizeClasses ranges(std::vector<i64> lasts);

  // The class of a size, as it appears in a key. Throws Error(kInvalidArgument) for sizes below 0.
  std::string of(i64 size) const;

 private:
  enum class Kind : u8 { kExact, kPowers, kRanges };
  explicit SizeClasses(Kind kind, std::vector<i64> lasts = {}) : kind_(kind), lasts_(std::move(lasts)) {}

  Kind kind_;
  std::vector<i64> lasts_;
};

class Key {
 public:
  // Names consist of letters, digits and _ . - ; this and the functions below throw Error(kInvalidArgument)
  // for others.
  explicit Key(std::string_view op) { add("", op); }
  Key& fact(std::string_view name, std::string_view value);
  Key& size(std::string_view name, i64 size, const SizeClasses& classes);

  // Text such as "linear dtype=bf16 layout=panels rows=513..1024".
  const std::string& text() const { return text_; }

 private:
  void add(std::string_view before, std::string_view word);

  std::string text_;
};

}  // namespace heddle::tune
