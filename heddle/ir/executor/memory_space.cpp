#include "heddle/ir/executor/memory_space.h"

#include <cstring>

namespace heddle {

void copy_to(MemorySpace* space, std::byte* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  if (space)
    space->write(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

void copy_from(MemorySpace* space, void* to, const std::byte* from, size_t bytes) {
  if (bytes == 0) return;
  if (space)
    space->read(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

}  // namespace heddle
