// The program's operator new: as the standard's, but it notes how many bytes it could not get, for the message.
#include <cstdlib>
#include <new>

#include "heddle/base/memory.h"

#ifndef HEDDLE_SANITIZED  // sanitizers have their own

void* operator new(size_t bytes) {
  for (;;) {
    if (void* made = std::malloc(bytes > 0 ? bytes : 1)) return made;
    const std::new_handler handler = std::get_new_handler();
    if (!handler) {
      heddle::note_refused(bytes);
      throw std::bad_alloc();
    }
    handler();
  }
}

void operator delete(void* made) noexcept {
  std::free(made);
}
void operator delete(void* made, size_t) noexcept {
  std::free(made);
}

#endif
