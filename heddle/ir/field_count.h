// Counts the fields of a plain struct at compile time, to check that its `visit` shows all of them.
#pragma once

#include <cstddef>

namespace heddle {

struct AnyField {
  template <class T>
  constexpr operator T() const noexcept;
};

// Adds initialisers until the struct accepts no more.
template <class T, class... Fields>
consteval size_t field_count() {
  if constexpr (requires { T{Fields{}..., AnyField{}}; })
    return field_count<T, Fields..., AnyField>();
  else
    return sizeof...(Fields);
}

}  // namespace heddle
