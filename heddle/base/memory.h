// How much memory this process may still take, and the Error where it is too little.
#pragma once

#include <cstddef>
#include <new>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "heddle/base/types.h"

namespace heddle {

// In bytes: what the system has for new programs without swapping, or less if the process or its control
// group has a limit. -1 when the system does not say.
i64 available_memory();

// Throws Error that says how many bytes were asked for (0: unknown), what for, how many are free, and what needs less.
[[noreturn]] void fail_memory(size_t bytes, std::string_view what);

// Called by a program whose operator new knows how much it was asked for, before it throws.
void note_refused(size_t bytes) noexcept;
size_t take_refused() noexcept;  // what was noted last, once; 0: nothing

// Returns work(). Memory that it cannot get is an Error that says what it was for.
template <class Work>
decltype(auto) with_memory_for(std::string_view what, Work&& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    fail_memory(take_refused(), what);
  } catch (const std::length_error&) {  // a container would be larger than the address space
    fail_memory(0, what);
  }
}

// A vector of `count` elements. Throws Error that names `what` when there is no memory for them.
template <class T>
std::vector<T> make_vector(size_t count, std::string_view what) {
  try {
    return std::vector<T>(count);
  } catch (const std::bad_alloc&) {
    fail_memory(count * sizeof(T), what);
  } catch (const std::length_error&) {
    fail_memory(count * sizeof(T), what);
  }
}

}  // namespace heddle
