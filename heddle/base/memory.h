// Says how much memory this process may still take, and makes the Error where it is too little.
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

// Returns work(). Memory that it cannot get is an Error that says what it was for. `bytes`: how much, where the caller knows.
template <class Work>
decltype(auto) with_memory_for(std::string_view what, Work&& work, size_t bytes = 0) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    const size_t noted = take_refused();
    fail_memory(bytes > 0 ? bytes : noted, what);
  } catch (const std::length_error&) {  // a container would be larger than the address space
    fail_memory(bytes, what);
  }
}

// A vector of `count` elements. Throws Error that names `what` when there is no memory for them.
template <class T>
std::vector<T> make_vector(size_t count, std::string_view what) {
  return with_memory_for(
      what, [&] { return std::vector<T>(count); }, count * sizeof(T));
}

}  // namespace heddle
