// Moves what the host packs to an executor's memory, piece by piece: while one piece is copied, the next one is packed.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "heddle/ir/executor/memory_space.h"
#include "heddle/ir/executor/transfer.h"

namespace heddle {

class Upload {
 public:
  static constexpr size_t kPieceBytes = size_t{32} << 20;

  // `most`: bytes of the largest piece that will be asked for.
  Upload(MemorySpace& space, size_t most);
  Upload(Upload&&) = default;
  // Memory of the host for the next piece, whose content is not defined. It waits until an earlier piece is copied.
  std::byte* piece();
  // Copies the piece that piece() gave last.
  void send(std::byte* to, size_t bytes);
  // Waits for all copies, and throws the first error of one.
  void finish() { queue_->finish(); }

 private:
  HostArena arena_;
  std::array<std::byte*, 2> pieces_;
  std::array<TransferEvent, 2> copies_;
  size_t next_ = 0;
  std::unique_ptr<TransferQueue> queue_;  // ends its copies before the arena goes
};

}  // namespace heddle
