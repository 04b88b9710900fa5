// How many fields a plain struct has, counted by the compiler: what a `visit` must show.
#pragma once

#include <cstddef>

namespace heddle {

struct AnyField {
  template <class T>
  constexpr operator T() const noexcept;
};

// Adds initialisers until the struct takes no more.
template <class T, class... Fields>
consteval size_t field_count() {
  if constexpr (requires { T{Fields{}..., AnyField{}}; })
    return field_count<T, Fields..., AnyField>();
  else
    return sizeof...(Fields);
}

}  // namespace heddle
