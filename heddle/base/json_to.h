// Reads values of JSON whose form is known, as those of tests and of files that heddle wrote.
#pragma once

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/json.h"

namespace heddle {

namespace json_detail {

template <class T>
struct ItemOf {};
template <class T>
struct ItemOf<std::vector<T>> {
  using Type = T;
};

}  // namespace json_detail

// A bool, number or text, or a vector of such. Throws Error(kIo) when the value is none, or the number too large.
template <class T>
T json_to(const Json& value) {
  if constexpr (std::same_as<T, bool>) {
    return value.as_bool();
  } else if constexpr (std::integral<T>) {
    const auto whole = value.to_int();
    if (!whole || !std::in_range<T>(*whole))
      fail(ErrorCode::kIo, "[json] {} is no integer of {} bits", brief(value), 8 * sizeof(T));
    return T(*whole);
  } else if constexpr (std::floating_point<T>) {
    return T(value.as_number());
  } else if constexpr (std::same_as<T, std::string>) {
    return value.as_string();
  } else {
    T made;
    for (const Json& item : value.items())
      made.push_back(json_to<typename json_detail::ItemOf<T>::Type>(item));
    return made;
  }
}

}  // namespace heddle
