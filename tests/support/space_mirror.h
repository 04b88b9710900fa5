// Copies the memory of a case, canaries included, to the space of an executor.
#pragma once

#include <vector>

#include "heddle/ir/executor/executor.h"
#include "tests/support/case_memory.h"

namespace heddle {

class SpaceMirror {
 public:
  SpaceMirror(CaseMemory& memory, MemorySpace& space) : memory_(memory), space_(space) {
    mirror_.panels = memory.memory.panels;
    for (u32 b = 0; b < memory.buffers.size(); ++b) {
      const auto all = memory.allocation(b);
      const size_t inside = size_t(memory.memory.base[b] - all.data()), pad = (64 - inside % 64) % 64;
      addresses_.push_back(space.allocate(all.size() + 64));
      copies_.push_back(addresses_.back() + pad);
      space.write(copies_.back(), all.data(), all.size());
      mirror_.base.push_back(copies_.back() + inside);
      if (!mirror_.panels[b]) continue;
      const size_t bytes = memory.panels(b).size() * sizeof(u64);
      addresses_.push_back(space.allocate(bytes));
      space.write(addresses_.back(), mirror_.panels[b], bytes);
      mirror_.panels[b] = reinterpret_cast<const u64*>(addresses_.back());
    }
  }
  SpaceMirror(const SpaceMirror&) = delete;
  SpaceMirror& operator=(const SpaceMirror&) = delete;
  ~SpaceMirror() {
    for (std::byte* address : addresses_) space_.release(address);
  }

  const Memory& memory() const { return mirror_; }
  void fetch() {
    for (u32 b = 0; b < memory_.buffers.size(); ++b)
      space_.read(memory_.allocation(b).data(), copies_[b], memory_.allocation(b).size());
  }

 private:
  CaseMemory& memory_;
  MemorySpace& space_;
  Memory mirror_;
  std::vector<std::byte*> addresses_, copies_;
};

}  // namespace heddle
