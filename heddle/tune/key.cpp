#include "heddle/tune/key.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "heddle/base/error.h"

namespace heddle::tune {

SizeClasses SizeClasses::exact() {
  return SizeClasses(Kind::kExact);
}

SizeClasses SizeClasses::powers() {
  return SizeClasses(Kind::kPowers);
}

SizeClasses SizeClasses::ranges(std::vector<i64> lasts) {
  require(!lasts.empty() && lasts[0] >= 0 &&
              std::adjacent_find(lasts.begin(), lasts.end(), std::greater_equal()) == lasts.end(),
          "[tune] the ends of ranges of sizes are {}; must ascend from 0 or more", fmt::join(lasts, ", "));
  return SizeClasses(Kind::kRanges, std::move(lasts));
}

std::string SizeClasses::of(i64 size) const {
  require(size >= 0, "[tune] a size is {}; must be 0 or more", size);
  const auto range = [](i64 first, i64 last) {
    return first == last ? fmt::format("{}", last) : fmt::format("{}..{}", first, last);
  };
  if (kind_ == Kind::kExact) return range(size, size);
  if (kind_ == Kind::kPowers) {
    const u64 last = std::bit_ceil(u64(size));
    return size <= 2 ? range(size, size) : fmt::format("{}..{}", last / 2 + 1, last);
  }
  const auto last = std::lower_bound(lasts_.begin(), lasts_.end(), size);
  const i64 first = last == lasts_.begin() ? 0 : *(last - 1) + 1;
  return last == lasts_.end() ? fmt::format("{}..", first) : range(first, *last);
}

void Key::add(std::string_view before, std::string_view word) {
  const bool plain = std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
  require(plain && !word.empty(),
          "[tune] '{}' is no word of a key; must be letters, digits, '_', '.' and '-'", word);
  text_.append(before).append(word);
}

Key& Key::fact(std::string_view name, std::string_view value) {
  add(" ", name);
  add("=", value);
  return *this;
}

Key& Key::size(std::string_view name, i64 size, const SizeClasses& classes) {
  return fact(name, classes.of(size));
}

}  // namespace heddle::tune
