#include "heddle/ir/executor/memory_space.h"

#include <cstring>

#include "heddle/ir/executor/panel_packer.h"

namespace heddle {

std::unique_ptr<PanelPacker> MemorySpace::panel_packer() {
  return nullptr;
}

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
