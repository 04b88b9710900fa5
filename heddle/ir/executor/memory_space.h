// Memory of an executor's buffers that is not the host's.
#pragma once

#include <cstddef>
#include <memory>

#include "heddle/base/types.h"

namespace heddle {

class PanelPacker;    // ir/executor/panel_packer.h
class TransferQueue;  // ir/executor/transfer.h

// Memory whose addresses the host cannot dereference. A copy is complete when the call returns.
class MemorySpace {
 public:
  virtual ~MemorySpace() = default;
  virtual std::byte* allocate(size_t bytes) = 0;  // zeroed, 128-byte aligned
  virtual void release(std::byte* address) = 0;
  virtual void write(std::byte* to, const void* from, size_t bytes) = 0;
  virtual void read(void* to, const std::byte* from, size_t bytes) = 0;
  virtual i64 available() const = 0;  // bytes that are free
  // For copies that run while their caller works (ir/executor/transfer.h): a queue, and zeroed memory of the host.
  virtual std::unique_ptr<TransferQueue> transfers();
  virtual std::shared_ptr<std::byte> host_memory(size_t bytes);
  virtual std::unique_ptr<PanelPacker> panel_packer();  // null: the host packs
};

// Copy to and from an executor's buffers. They lie in `space`, or in the host's memory when it is null.
void copy_to(MemorySpace* space, std::byte* to, const void* from, size_t bytes);
void copy_from(MemorySpace* space, void* to, const std::byte* from, size_t bytes);

}  // namespace heddle
