// Counts what `new` is asked for. Included by one source of a test program: it takes the place of the library's
// operators. Those of a sanitizer cannot be replaced; it tells of each allocation instead.
#pragma once

#include <cstdlib>
#include <new>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define HEDDLE_SANITIZER_TELLS
#include <sanitizer/allocator_interface.h>
#endif
#endif

namespace heddle {

inline thread_local size_t allocations_here = 0;  // by this thread

}  // namespace heddle

#ifdef HEDDLE_SANITIZER_TELLS
namespace heddle {
inline const int kTellsOfAllocations = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, size_t) { ++allocations_here; }, [](const volatile void*) {});
}  // namespace heddle
#else
// NOLINTBEGIN(misc-definitions-in-headers): one source includes it.
// Not inlined: the compiler would see free() where it wants delete.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++heddle::allocations_here;
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++heddle::allocations_here;
  return std::malloc(bytes ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
// NOLINTEND(misc-definitions-in-headers)
#endif
